"""The targets of messages, read from what follows `--to`.

| target | is |
|---|---|
| `mailtos://USER:PASSWORD@HOST?to=ANNA@STUDIO`, `https://hooks.slack.com/...`, others | a service of apprise |
| `github` | the summary of the running job, the file that GITHUB_STEP_SUMMARY names |
| `file:PATH` | a file, which gets each message below the last as plain text |
| `env:NAME` | the target in that environment variable, so that no list of processes shows it |
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from gamelens._files import replace_file, why_unwritable
from gamelens.errors import BadQuery
from gamelens.messages.journal import NotSent, identity_of
from gamelens.messages.message_text import chat_text, harmless, html_page, markdown, plain_text
from gamelens.messages.morning_message import MorningMessage

MOST_ATTACHED: Final = 5_000_000
"""Bytes of a report that is attached. A larger one is named only: servers refuse large mails."""
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_BEFORE_APPRISE: Final = {
    "smtp": "mailto://USER:PASSWORD@HOST:587?to=ADDRESS",
    "smtps": "mailtos://USER:PASSWORD@HOST?to=ADDRESS",
    "slack+": "the webhook's address as it is, https://hooks.slack.com/services/...",
    "discord+": "the webhook's address as it is, https://discord.com/api/webhooks/...",
    "teams+": "the workflow's address as it is, https://....logic.azure.com/...",
    "json+": "json://HOST/PATH, or jsons:// for HTTPS",
}
"""What to write in place of a scheme of earlier releases, which http or https followed after a plus."""


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
        path = environ.get(_SUMMARY) or _refuse(f"github needs {_SUMMARY}, which a job of GitHub Actions sets")
        job = f"github {environ.get('GITHUB_REPOSITORY', '')} {environ.get('GITHUB_WORKFLOW', '')}"
        return _file(Path(path), "the summary of this job", job, markdown)
    if text.startswith("file:"):
        path = text.removeprefix("file:").removeprefix("//") or _refuse("file: needs the path of a file")
        return _file(Path(path).expanduser(), path, f"file {Path(path).expanduser().absolute()}", plain_text)
    if "://" not in text:
        _refuse("is neither an address with ://, nor github, nor file:PATH, nor env:NAME")
    scheme = text.partition("://")[0].lower()
    if instead := _BEFORE_APPRISE.get(re.sub(r"\+https?$", "+", scheme)):
        _refuse(f"has a scheme of an earlier release: write {instead}")
    return _service(text, scheme)


def _refuse(rule: str) -> NoReturn:
    raise BadQuery("to", msgspec.UNSET, f"{rule}. A target is an address of apprise, github, file:PATH or env:NAME")


def _file(path: Path, name: str, address: str, write: Callable[[MorningMessage], str]) -> Target:
    """Return the target that adds messages to the file at *path*."""

    def append(message: MorningMessage) -> None:
        """Add the message to the file, whole or not at all.

        Raises:
            NotSent: the file cannot be written.
        """
        try:
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            with replace_file(path) as draft:
                draft.write_text(f"{before}\n{write(message)}" if before else write(message), encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = why_unwritable(error) if isinstance(error, OSError) else "it is not text"
            raise NotSent(f"{name} cannot be written: {reason}") from None

    return Target(name, identity_of(address), append)


def _service(text: str, scheme: str) -> Target:
    """Return a service of apprise, whose log, which quotes addresses, stays silent.

    Raises:
        BadQuery: apprise is not installed, or does not know the address.
    """
    try:
        import apprise
        from apprise.attachment.file import AttachFile
    except ImportError:
        _refuse(f"{scheme}:// is sent by apprise: pip install 'gamelens[notify]'")
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    asset = apprise.AppriseAsset(
        app_id="gamelens", app_desc="gamelens", app_url="", image_url_mask="", image_url_logo="", async_mode=False
    )
    services = apprise.Apprise(asset=asset)
    with warnings.catch_warnings():  # it loads all its services, which look for old modules of the standard library
        warnings.simplefilter("ignore", DeprecationWarning)
        is_known = services.add(text)
    if not is_known:
        _refuse(f"{scheme}:// is not known to apprise, or is incomplete: see https://appriseit.com/services/")
    service = services[0]
    is_mail = service.resolve_format() == apprise.NotifyFormat.HTML and service.title_maxlen > 0
    name = f"{service.service_name or scheme} by apprise"

    def send(message: MorningMessage) -> None:
        """Send the message. A mail gets the page and the reports, any other service a text that fits and is harmless.

        Raises:
            OSError: apprise reports a failure. It does not say whether the message arrived.
        """
        title = message.title if is_mail else harmless(message.title)
        pages = [path for path in message.reports if is_mail and path.stat().st_size <= MOST_ATTACHED]
        attached = [AttachFile(str(path)) for path in pages]  # type: ignore[no-untyped-call]
        took = services.notify(
            title=title,
            body=html_page(message) if is_mail else chat_text(message, service.body_maxlen - len(title) - 2),
            body_format=apprise.NotifyFormat.HTML if is_mail else apprise.NotifyFormat.TEXT,
            attach=attached or None,
        )
        if not took:
            raise OSError(f"{scheme}:// was tried, and apprise reports a failure")

    return Target(name, identity_of(text), send)
