"""Country of an IP address, from a database or the ranges reserved for documentation; the address is never kept."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import maxminddb

from gamelens.errors import Refused

# Our choice: each range reserved for documentation stands for one country, so that a test can be from anywhere.
_TEST_RANGES: Final = {
    ip_network("192.0.2.0/24"): "US",
    ip_network("198.51.100.0/24"): "DE",
    ip_network("203.0.113.0/24"): "JP",
    ip_network("2001:db8::/32"): "NA",
}
_LOOPBACK: Final = ("127.0.0.1", "::1")  # nearly everybody's, and nowhere


class GeoIp:
    """Two letters for an address: from *database*, a file in MaxMind's format, else from the test ranges.

    Raises:
        Refused: *database* is no such file.
    """

    def __init__(self, database: Path | None = None) -> None:
        self._database = _open(database) if database else None

    def of(self, address: str | None) -> str | None:
        """The country of *address*, of the first of a list; None where nothing is known (What the service does 7)."""
        ip = _read_address(address) if address and address not in _LOOPBACK else None
        if ip is None:
            return None
        known = _country_in(self._database, ip) if self._database else None
        return known or next((country for network, country in _TEST_RANGES.items() if ip in network), None)

    def close(self) -> None:
        """Let go of the file."""
        if self._database:
            self._database.close()


def _open(database: Path) -> maxminddb.Reader:
    try:
        return maxminddb.open_database(database)
    except OSError as error:
        raise Refused(f"cannot read {database}: {error.strerror}") from None
    except (maxminddb.InvalidDatabaseError, ValueError):
        raise Refused(f"{database} is no database of addresses: it must be in MaxMind's format (.mmdb)") from None


def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    """The first address of *text*, which proxies put before their own, some of them with a port."""
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
        found: Any = database.get(ip)
    except (maxminddb.InvalidDatabaseError, ValueError):  # damaged there, or made for the other kind of address
        return None
    if not isinstance(found, dict):
        return None
    country = found.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else found.get("country_code", country)
    if not isinstance(code, str):
        return None
    return code.upper() if len(code) == 2 and code.isascii() and code.isalpha() else None
