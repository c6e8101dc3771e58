"""The impression_data of each mediation SDK (Wire 3.6, Impression payloads)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from gamelens.simulator.scenarios.game_profile import AdProfile, Network, Vendor

VENDOR_FORMATS: Final[dict[Vendor, dict[str, str]]] = {
    "max": {"rewarded_video": "REWARDED", "interstitial": "INTER", "banner": "BANNER"},
    "ironsource": {"rewarded_video": "rewarded_video", "interstitial": "interstitial", "banner": "banner"},
    "admob": {"rewarded_video": "REWARDED_VIDEO", "interstitial": "INTERSTITIAL", "banner": "BANNER"},
}
"""Name of each ad format, by vendor."""

VENDORS_WITH_ID: Final = ("ironsource",)
"""Vendors whose payload carries an id of the impression."""

PayloadBuilder = Callable[..., dict[str, Any]]


def impression_opening(
    ads: AdProfile, *, network: Network | None, format_name: str, placement: str, country: str
) -> bytes:
    """Return the start of an `impression` event, up to the id and revenue of the impression.

    The closing braces are missing. *network* is None if the vendor does not report who filled the ad.
    """
    name = network.reported_name if network else None
    data = _PAYLOADS[ads.vendor](ads, name, format_name, placement, country)
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


def _max(ads: AdProfile, network: str | None, format_name: str, placement: str, country: str) -> dict[str, Any]:
    return {
        "country": country,
        "network_name": network,
        "adunit_id": _unit(ads, format_name),
        "adunit_format": VENDOR_FORMATS["max"][format_name],
        "placement": placement,
        "creative_id": f"{country.lower()}-{format_name}",
    }


def _ironsource(ads: AdProfile, network: str | None, format_name: str, placement: str, country: str) -> dict[str, Any]:
    return {
        "ad_unit": VENDOR_FORMATS["ironsource"][format_name],
        "ad_network": network,
        "instance_name": _unit(ads, format_name),
        "country": country,
        "placement": placement,
        "precision": "BID",
        "ab": "A",
        "segment_name": "",
        "encrypted_cpm": "",
    }


def _admob(ads: AdProfile, network: str | None, format_name: str, placement: str, country: str) -> dict[str, Any]:
    return {
        "adunit_id": _unit(ads, format_name),
        "currency": ads.currency,
        "precision": 3,
        "adunit_format": VENDOR_FORMATS["admob"][format_name],
        "network_class_name": network,
    }


def _unit(ads: AdProfile, format_name: str) -> str:
    return next(unit.unit for name, unit in ads.formats.items() if name == format_name)


_PAYLOADS: Final[dict[Vendor, PayloadBuilder]] = {"max": _max, "ironsource": _ironsource, "admob": _admob}
