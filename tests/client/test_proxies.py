"""Proxies and addresses as machines really have them: none ends in an error of a library."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from click.testing import CliRunner

from gamelens.cli import cli
from gamelens.client.connection.control_api import ControlApi
from gamelens.client.connection.proxies import proxy_for
from gamelens.client.connection.settings import collector_settings, metrics_settings
from gamelens.client.connection.transport import Transport
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, Unreachable
from support.plain_server import PlainRequest, plain_server

ADDRESS = "https://metrics.example.com"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets variables, in an environment without any of a proxy."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)

    def put(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine at which nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.shown_by(6)
@pytest.mark.parametrize(
    ("exempt", "address", "is_direct"),
    [
        ("localhost,127.0.0.1,[::1]", ADDRESS, False),
        ("localhost, [::1], metrics.example.com", ADDRESS, True),
        ("[2001:db8::7]", "https://[2001:db8::7]:8443", True),
        ("2001:db8::/32", "https://[2001:db8::7]", True),
        ("[2001:db8::]/32", "https://[2001:db8::7]", True),
        ("[2001:db8::7]:443", "https://[2001:db8::7]", True),
        ("[2001:db8::7]:444", "https://[2001:db8::7]", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.*", "https://10.1.2.3", True),
        (".example.com", ADDRESS, True),
        ("*.example.com", ADDRESS, True),
        ("example.com", ADDRESS, True),
        ("example.com", "https://example.com", True),
        ("ple.com", ADDRESS, False),
        ("EXAMPLE.com:443", ADDRESS, True),
        ("example.com:80", ADDRESS, False),
        ("https://metrics.example.com", ADDRESS, True),
        ("localhost metrics.example.com", ADDRESS, True),
        ("localhost;metrics.example.com", ADDRESS, True),
        ("*", ADDRESS, True),
        ("]]>,%%,:::,300.1.1.1/99,[,://,.", ADDRESS, False),
    ],
)
def test_no_proxy(environ: Callable[..., None], exempt: str, address: str, is_direct: bool) -> None:
    """Entries in any of the usual forms count, and one that means nothing costs nothing."""
    environ(HTTPS_PROXY="http://proxy.example.com:3128", NO_PROXY=exempt)
    assert (proxy_for(address) is None) == is_direct
    Transport(address)


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({"HTTPS_PROXY": "proxy.example.com:3128\n"}, "http://proxy.example.com:3128 (HTTPS_PROXY)"),
        ({"https_proxy": " http://proxy.example.com:3128\r\n"}, "http://proxy.example.com:3128 (https_proxy)"),
        ({"ALL_PROXY": "https://proxy.example.com"}, "https://proxy.example.com (ALL_PROXY)"),
        ({"HTTPS_PROXY": "http://ann:p@ss@proxy.example.com"}, "…@proxy.example.com (HTTPS_PROXY)"),
        ({"HTTP_PROXY": "http://proxy.example.com:3128"}, None),
        ({"HTTPS_PROXY": " "}, None),
    ],
)
def test_the_proxy_of_an_address(environ: Callable[..., None], variables: dict[str, str], proxy: str | None) -> None:
    """A variable is read without blanks and line ends, and shown without a password."""
    environ(**variables)
    found = proxy_for(ADDRESS)
    assert (str(found) if found else None) == proxy
    assert proxy_for("http://127.0.0.1:8080") is None
    assert "p@ss" not in repr(found)
    Transport(ADDRESS)


@pytest.mark.parametrize(
    "proxy",
    [
        *("http://proxy:99999", "http://proxy:port", "http://proxy:0", "http://[::1", "http://", "ftp://proxy:21"),
        *(
            "socks4://proxy:1080",
            "http://pro xy:80",
            "http://prox\ny:80",
            "http://pröxy..example",
            "://",
            "http://<proxy>",
        ),
        "http://ann:hunter2@proxy:99999",
    ],
)
def test_a_proxy_that_is_none_is_named(environ: Callable[..., None], proxy: str) -> None:
    """The error names the variable, and not its password."""
    environ(HTTPS_PROXY=proxy)
    with pytest.raises(BadQuery, match=r"HTTPS_PROXY = .* is not ") as refused:
        Client(api_key="k", metrics_url=ADDRESS, cache=False)
    assert "hunter2" not in str(refused.value)


@pytest.mark.skipif(find_spec("socksio") is not None, reason="the package is here")
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks_proxy_names_its_package(environ: Callable[..., None], scheme: str) -> None:
    """Without the package the error says what to install, whichever variable it is."""
    environ(ALL_PROXY=f"{scheme}://proxy.example.com:1080")
    with pytest.raises(BadQuery, match=r"ALL_PROXY = .*pip install socksio.*NO_PROXY"):
        Client(api_key="k", metrics_url=ADDRESS, cache=False)


@pytest.mark.parametrize(
    "address",
    [
        *("https://metrics.example.com:99999", "https://metrics.example.com:https", "https://metrics.example.com:0"),
        *(
            "metrics.example.com",
            "metrics.example.com:8443",
            "//metrics.example.com",
            "https://[::1",
            "https://[metrics]",
        ),
        *("https://met rics.example.com", "https://met\nrics.example.com", "https://a..example.com", "https://"),
        *(
            "https://" + "a" * 64 + ".example.com",
            "https://☃..net",
            '"https://metrics.example.com"',
            "https://a.example\x7f",
        ),
    ],
)
def test_an_address_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The error names the variable in which it stands."""
    monkeypatch.setenv("GAMELENS_METRICS_URL", address)
    monkeypatch.setenv("GAMELENS_COLLECTOR_URL", address)
    with pytest.raises(BadQuery, match=r"metrics_url = .*the variable GAMELENS_METRICS_URL"):
        Client(api_key="k", cache=False)
    with pytest.raises(BadQuery, match=r"collector_url = .*the variable GAMELENS_COLLECTOR_URL"):
        collector_settings(collector_url=None, game_key="g", secret_key="s")


def test_a_host_that_is_no_name_is_refused_when_the_client_is_made() -> None:
    """A host that only the library for names refuses is a `BadQuery` too."""
    with pytest.raises(BadQuery, match="is not an address"):
        Client(api_key="k", metrics_url="https://☃.example", cache=False)


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\t\n"])
def test_blanks_and_line_ends_are_trimmed(end: str) -> None:
    """Settings from files, secrets and shells often end with a line end."""
    names = {"api_key": "k", "metrics_url": f"{ADDRESS}/"}
    environ = {f"GAMELENS_{name.upper()}": f" {value}{end}" for name, value in names.items()}
    settings = metrics_settings(api_key=None, metrics_url=None, environ=environ)
    assert (settings.metrics_url, settings.api_key.reveal()) == (ADDRESS, "k")
    assert metrics_settings(api_key=f"k{end}", metrics_url=f"{ADDRESS}{end}").metrics_url == ADDRESS
    collector = collector_settings(
        collector_url=f"{ADDRESS}{end}", game_key=f"g{end}", secret_key=f"s{end}", environ={}
    )
    assert (collector.collector_url, collector.game_key, collector.secret_key.reveal()) == (ADDRESS, "g", "s")


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:x/token", "127.0.0.1:80/token", "http://[::1/token", "http://127.0.0.1:80", "token"]
)
def test_the_address_of_a_control_api_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The error names the variable, and never shows the token."""
    monkeypatch.setenv("GAMELENS_CONSOLE_URL", address)
    with pytest.raises(BadQuery, match=r"GAMELENS_CONSOLE_URL .*--ready FILE") as refused:
        ControlApi()
    assert "/token" not in str(refused.value)
    monkeypatch.setenv("GAMELENS_CONSOLE_URL", "http://127.0.0.1:80/token\n")
    assert repr(ControlApi()) == "ControlApi('http://127.0.0.1:80')"


def test_a_dead_proxy_is_not_a_dead_service(environ: Callable[..., None], closed_port: int) -> None:
    """The error names the proxy and the variable."""
    environ(HTTPS_PROXY=f"http://ann:hunter2@127.0.0.1:{closed_port}")
    with (
        Client(api_key="k", metrics_url=ADDRESS, cache=False) as lens,
        pytest.raises(Unreachable, match=rf"the proxy .*:{closed_port} \(HTTPS_PROXY\) does not answer") as dead,
    ):
        lens.available()
    assert "hunter2" not in str(dead.value)


@pytest.mark.parametrize(
    ("status", "says"), [(407, "407.*Write user name and password into HTTPS_PROXY"), (403, "403"), (501, "501")]
)
def test_a_proxy_that_refuses_is_named(environ: Callable[..., None], status: int, says: str) -> None:
    """Its status is not one of the service."""

    def respond(request: PlainRequest) -> None:
        request.answer(status)

    with plain_server(respond) as server:
        server.RequestHandlerClass.do_CONNECT = lambda request: request.do_GET()  # type: ignore[attr-defined]
        environ(HTTPS_PROXY=server.url, HTTP_PROXY=server.url)
        with Client(api_key="k", metrics_url=ADDRESS, cache=False) as lens, pytest.raises(Unreachable, match=says):
            lens.available()
        assert server.paths == ["metrics.example.com:443"]
        if status == 407:
            with (
                Client(api_key="k", metrics_url="http://metrics.example.com", allow_http=True, cache=False) as lens,
                pytest.raises(Unreachable, match=says.replace("HTTPS", "HTTP")),
            ):
                lens.available()


def test_an_address_that_speaks_no_tls_is_told_apart() -> None:
    """Something answers: the scheme is wrong."""
    with (
        plain_server(lambda request: request.answer(200)) as server,
        Client(api_key="k", metrics_url=server.url.replace("http", "https"), cache=False) as lens,
        pytest.raises(Unreachable, match=r"not in TLS.*begins with"),
    ):
        lens.available()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"HTTPS_PROXY": "socks4://proxy:1"}, "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://127.0.0.1:99999"}, "HTTPS_PROXY"),
        ({"GAMELENS_METRICS_URL": "https://metrics.example.com:x"}, "GAMELENS_METRICS_URL"),
        ({"GAMELENS_CONSOLE_URL": "http://127.0.0.1:x/token"}, "GAMELENS_CONSOLE_URL"),
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "SSL_CERT_FILE"),
    ],
)
def test_the_doctor_goes_on(
    environ: Callable[..., None], variables: dict[str, str], says: str, tmp_path: Any, closed_port: int
) -> None:
    """A setting that cannot be used is a finding, and the checks after it are done."""
    environ(NO_PROXY="[::1]", GAMELENS_API_KEY="k", GAMELENS_METRICS_URL=ADDRESS, XDG_CONFIG_HOME=str(tmp_path))
    environ(HTTPS_PROXY=f"http://127.0.0.1:{closed_port}")
    environ(**variables)
    done = CliRunner().invoke(cli, ["doctor", "--deadline", "5"])
    assert done.exit_code == 1
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert says in done.output
    assert "collector" in done.output
