"""The targets of messages, read from what follows `--to`.

| target | is |
|---|---|
| `smtp://USER:PASSWORD@HOST:587?to=ANNA@STUDIO&from=ME@STUDIO` | a mail; `smtps://` for a server that begins with TLS |
| `slack+https://...`, `teams+https://...`, `discord+https://...`, `json+https://...` | a webhook in that shape |
| `https://hooks.slack.com/...` and the addresses of Teams and Discord | a webhook whose shape its host says |
| `github` | the summary of the running job, the file that GITHUB_STEP_SUMMARY names |
| `env:NAME` | the target in that environment variable, so that no list of processes shows it |
| any other address with `://` | a service of apprise (extra `notify`) |
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec

from gamelens._files import replace_file
from gamelens.errors import BadQuery
from gamelens.messages.journal import NotSent, identity_of
from gamelens.messages.mail import MailServer, send_mail
from gamelens.messages.message_text import html_page, markdown, plain_text
from gamelens.messages.morning_message import MorningMessage
from gamelens.messages.webhooks import SHAPES, post

_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_PORTS: Final = {"smtp": 587, "smtps": 465}
_HOSTS: Final = (
    ("slack", re.compile(r"hooks\.slack(-gov)?\.com")),
    ("discord", re.compile(r"(\w+\.)?discord(app)?\.com")),
    ("teams", re.compile(r".+\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)")),
)
_ADDRESS: Final = re.compile(r"[^@\s<>,;\x00-\x1f]+@[^@\s<>,;\x00-\x1f]+")


class Target(msgspec.Struct, frozen=True):
    """Somewhere a message goes.

    The *name* has no secret, *identity* is the name in the journal, and *send* is what `MessageJournal.deliver` wants.
    """

    name: str
    identity: str
    send: Callable[[MorningMessage], None]

    def __repr__(self) -> str:
        return f"Target({self.name!r})"


def target_of(text: str, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the target that *text* names.

    Raises:
        BadQuery: it is not a target. The error does not show the text, which may hold a password.
    """
    if text.strip().startswith("env:"):
        variable = text.strip()[4:]
        text = environ.get(variable) or _refuse(f"names the environment variable {variable}, which is not set")
    text = text.strip()
    if text == "github":
        return _step_summary(environ)
    try:
        url = urlsplit(text)
        url.port  # noqa: B018  (raises where it is not a number)
    except ValueError:
        _refuse("is not an address: its host or port cannot be read")
    if url.scheme in _PORTS:
        return _mail(url)
    shape, _, scheme = url.scheme.rpartition("+")
    if scheme in ("http", "https") and url.hostname:
        return _webhook(url, scheme, shape)
    if "://" not in text:
        _refuse("is neither an address with ://, nor github, nor env:NAME")
    return _apprise(text, url.scheme)


def _refuse(rule: str) -> NoReturn:
    raise BadQuery("to", msgspec.UNSET, f"{rule}. A target is smtp://, https://, slack+https://, github or env:NAME")


def _mail(url: SplitResult) -> Target:
    options = parse_qs(url.query)
    to, sender = options.get("to", []), options.get("from", options.get("to", []))
    if not url.hostname or len(to) != 1 or len(sender) != 1 or not all(map(_ADDRESS.fullmatch, (*to, *sender))):
        _refuse("for mail must be smtp://HOST?to=ADDRESS&from=ADDRESS: use one target per address")
    server = MailServer(
        host=url.hostname,
        port=url.port or _PORTS[url.scheme],
        to=to[0],
        sender=sender[0],
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        is_tls=url.scheme == "smtps",
    )
    identity = identity_of(f"{server.host}:{server.port} {server.to}")
    return Target(f"mail to {server.to}", identity, lambda message: send_mail(message, server, identity))


def _webhook(url: SplitResult, scheme: str, shape: str) -> Target:
    host = url.hostname or ""
    shape = shape or next((name for name, hosts in _HOSTS if hosts.fullmatch(host)), "")
    if shape not in SHAPES:
        _refuse(
            f"at {host} does not say which chat it belongs to: put {', '.join(f'{name}+' for name in SHAPES)} in front"
        )
    if url.username or url.password:
        _refuse(f"at {host} has a user name before its host, which a webhook never has")
    address = f"{scheme}://{url.netloc}"
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return Target(
        f"{shape} at {host}",
        identity_of(f"{shape} {address}{path}"),
        lambda message: post(message, shape=shape, address=address, path=path),
    )


def _step_summary(environ: Mapping[str, str]) -> Target:
    named = environ.get(_SUMMARY)
    if not named:
        _refuse(f"github needs {_SUMMARY}, which a job of GitHub Actions sets")
    path = Path(named)

    def append(message: MorningMessage) -> None:
        """Add the message to the file, whole or not at all."""
        try:
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            with replace_file(path) as draft:
                draft.write_text(f"{before}\n{markdown(message)}" if before else markdown(message), encoding="utf-8")
        except OSError as error:
            raise NotSent(f"{_SUMMARY} cannot be written: {error.strerror}") from None

    identity = identity_of(f"github {environ.get('GITHUB_REPOSITORY', '')} {environ.get('GITHUB_WORKFLOW', '')}")
    return Target("the summary of this job", identity, append)


def _apprise(text: str, scheme: str) -> Target:
    """Return a service of apprise, whose log, which quotes addresses, stays silent.

    Raises:
        BadQuery: apprise is not installed, or does not know the address.
    """
    try:
        import apprise
    except ImportError:
        _refuse(f"{scheme}:// is sent by apprise: pip install 'gamelens[notify]'")
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = apprise.Apprise()
    with warnings.catch_warnings():  # it loads all its services, which look for old modules of the standard library
        warnings.simplefilter("ignore", DeprecationWarning)
        is_known = service.add(text)
    if not is_known:
        _refuse(f"{scheme}:// is not known to apprise, or is incomplete")

    def send(message: MorningMessage) -> None:
        """Send the message, as HTML where the service shows it.

        Raises:
            OSError: apprise reports a failure, which may have come half-way.
        """
        is_html = any(one.notify_format == apprise.NotifyFormat.HTML for one in service)
        body, form = (html_page(message), "html") if is_html else (plain_text(message), "text")
        if not service.notify(body=body, title=message.title, body_format=form):
            raise OSError(f"apprise reports a failure of {scheme}://")

    return Target(f"{scheme} by apprise", identity_of(text), send)
