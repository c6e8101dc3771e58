"""The impression_data of each mediation SDK (Wire 3.6, Impression payloads)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gamelens.simulator.scenarios.game_profile import AdFormat, AdProfile, Network, Vendor

VENDOR_FORMATS: Final[dict[Vendor, dict[str, str]]] = {
    "max": {"rewarded_video": "REWARDED", "interstitial": "INTER", "banner": "BANNER"},
    "ironsource": {"rewarded_video": "rewarded_video", "interstitial": "interstitial", "banner": "banner"},
    "admob": {"rewarded_video": "REWARDED_VIDEO", "interstitial": "INTERSTITIAL", "banner": "BANNER"},
}
"""Name of each ad format, by vendor."""

VENDORS_WITH_ID: Final = ("ironsource",)
"""Vendors whose payload carries an id of the impression."""


def impression_opening(
    ads: AdProfile, *, network: Network | None, format_name: AdFormat, placement: str, country: str
) -> bytes:
    """Return the start of an `impression` event, up to the id and revenue of the impression.

    The closing braces are missing. *network* is None if the vendor does not report who filled the ad.
    """
    name = network.reported_name if network else None
    unit, vendor_format = ads.formats[format_name].unit, VENDOR_FORMATS[ads.vendor][format_name]
    data: dict[str, Any]
    match ads.vendor:
        case "max":
            data = {
                "country": country,
                "network_name": name,
                "adunit_id": unit,
                "adunit_format": vendor_format,
                "placement": placement,
                "creative_id": f"{country.lower()}-{format_name}",
            }
        case "ironsource":
            data = {
                "ad_unit": vendor_format,
                "ad_network": name,
                "instance_name": unit,
                "country": country,
                "placement": placement,
                "precision": "BID",
                "ab": "A",
                "segment_name": "",
                "encrypted_cpm": "",
            }
        case "admob":
            data = {
                "adunit_id": unit,
                "currency": ads.currency,
                "precision": 3,
                "adunit_format": vendor_format,
                "network_class_name": name,
            }
    fields = {"category": "impression", "ad_network_name": ads.vendor, "ad_network_version": ads.vendor_version}
    return msgspec.json.encode(fields)[:-1] + b',"impression_data":' + msgspec.json.encode(data)[:-1]


def impression_tail(vendor: Vendor, micros: int, auction_id: bytes) -> bytes:
    """Return the end of impression_data: the id, the revenue and the closing brace.

    Revenue is in USD for max and ironsource, and in micros for admob.
    """
    if vendor == "admob":
        return b',"revenue":%d}' % micros
    whole, fraction = divmod(micros, 1_000_000)
    if vendor == "ironsource":
        return b',"auction_id":"%b","revenue":%d.%06d}' % (auction_id, whole, fraction)
    return b',"revenue":%d.%06d}' % (whole, fraction)
