"""The proxy on the way to an address, as the environment names it.

The variables are HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in capitals or small letters; where none is set,
macOS and Windows have settings of their own. httpx reads the same, but stops at an entry of NO_PROXY such as `[::1]`
and names no variable in its errors.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.request import getproxies, proxy_bypass

import msgspec

from gamelens.client.connection.settings import is_loopback, split_address, without_password
from gamelens.errors import BadQuery

_SOCKS: Final = ("socks5", "socks5h")
_EXAMPLE: Final = "such as http://proxy.example.com:3128"
_PORTS: Final = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy and where its address comes from.

    Attributes:
        url: the address, which may hold a password.
        source: the variable that names it.
    """

    url: str
    source: str

    def __str__(self) -> str:
        return f"{without_password(self.url)} ({self.source})"

    def __repr__(self) -> str:
        return f"Proxy({str(self)!r})"


def proxy_for(address: str) -> Proxy | None:
    """Return the proxy for requests to *address*, or None. There is none for this machine.

    Raises:
        BadQuery: the address of the proxy is invalid, or it is a SOCKS proxy and the package for these is missing.
    """
    parts = split_address(address)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    named = getproxies()
    kind = next((kind for kind in (parts.scheme, "all") if named.get(kind, "").strip()), None)
    if kind is None:
        return None
    port, exempt = parts.port or _PORTS[parts.scheme], named.get("no", "")
    if _is_exempt(host, port, exempt) if exempt else proxy_bypass(host):
        return None
    names = (f"{kind}_proxy", f"{kind.upper()}_PROXY")
    source = next((name for name in names if os.environ.get(name)), "the settings of this system")
    return Proxy(_checked(named[kind].strip(), source), source)


def _checked(url: str, source: str) -> str:
    """Return the address of a proxy with its scheme, http where it has none."""
    url = url if "://" in url else f"http://{url}"
    shown = without_password(url)
    try:
        parts = split_address(url, schemes=("http", "https", *_SOCKS))
    except ValueError as error:
        raise BadQuery(source, shown, f"is not the address of a proxy, {_EXAMPLE}: it {error}") from None
    if parts.scheme in _SOCKS and find_spec("socksio") is None:
        rule = "is a SOCKS proxy, which takes the package socksio: `pip install socksio`. Or name an HTTP proxy"
        raise BadQuery(source, shown, f"{rule}, or write the host of the service into NO_PROXY")
    return url


def _is_exempt(host: str, port: int, exempt: str) -> bool:
    """Return whether an entry of NO_PROXY covers *host*.

    An entry is a domain, which covers what is below it, an IP address, a network such as 10.0.0.0/8, or a pattern with
    `*`. It may have a port. An entry that is none of these covers nothing.
    """
    return any(_covers(entry.rpartition("://")[2].lower(), host, port) for entry in re.split(r"[\s,;]+", exempt))


def _covers(entry: str, host: str, port: int) -> bool:
    if with_port := re.fullmatch(r"([^:]+|\[.*\]):(\d+)", entry):
        entry, own_port = with_port.groups()
        if int(own_port) != port:
            return False
    name = re.sub(r"[\[\]]", "", entry)
    if fnmatchcase(host, name):
        return True
    try:
        return ip_address(host) in ip_network(name, strict=False)
    except ValueError:  # a domain
        return (bool(name.strip("*.")) and host.endswith(f".{name.lstrip('*.')}")) or host == name.lstrip("*.")
