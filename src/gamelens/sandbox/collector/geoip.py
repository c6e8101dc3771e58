"""Country of an IP address, which itself is never stored (Wire 1.17, Country)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import maxminddb

from gamelens.errors import Refused

# Each range reserved for documentation stands for a country, so that tests can choose one (Wire 1.17, Country).
_TEST_RANGES: Final = {
    ip_network("192.0.2.0/24"): "US",
    ip_network("198.51.100.0/24"): "DE",
    ip_network("203.0.113.0/24"): "JP",
    ip_network("2001:db8::/32"): "NA",
}
_LOOPBACK: Final = ("127.0.0.1", "::1")  # by far the most frequent, and in no country


class GeoIp:
    """Countries by address, from *database* in MaxMind's format, else from the test ranges.

    Raises:
        Refused: *database* is not such a file.
    """

    def __init__(self, database: Path | None = None) -> None:
        self._database = _open(database) if database else None

    def of(self, address: str | None) -> str | None:
        """Return the country of the first IP address in *address*, or None if it is not found."""
        ip = _read_address(address) if address and address not in _LOOPBACK else None
        if ip is None:
            return None
        country = _country_in(self._database, ip) if self._database else None
        return country or next((code for network, code in _TEST_RANGES.items() if ip in network), None)

    def close(self) -> None:
        """Close the database."""
        if self._database:
            self._database.close()


def _open(database: Path) -> maxminddb.Reader:
    try:
        return maxminddb.open_database(database)
    except OSError as error:
        raise Refused(f"cannot read {database}: {error.strerror}") from None
    except (maxminddb.InvalidDatabaseError, ValueError):
        raise Refused(f"{database} is not a GeoIP database: it must be in MaxMind's format (.mmdb)") from None


def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the first address of *text*: proxies append their own, and some add a port."""
    first = text.partition(",")[0].strip()
    if first.startswith("["):
        first = first[1:].partition("]")[0]
    elif first.count(":") == 1:
        first = first.partition(":")[0]
    try:
        ip = ip_address(first)
    except ValueError:
        return None
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip


def _country_in(database: maxminddb.Reader, ip: IPv4Address | IPv6Address) -> str | None:
    try:
        record: Any = database.get(ip)
    except (maxminddb.InvalidDatabaseError, ValueError):  # damaged, or built for the other address family
        return None
    if not isinstance(record, dict):
        return None
    country = record.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else record.get("country_code", country)
    if not isinstance(code, str):
        return None
    return code.upper() if len(code) == 2 and code.isascii() and code.isalpha() else None
