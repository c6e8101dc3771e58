"""A message as a mail: plain text and HTML, handed to one SMTP server for one address."""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from typing import Final

import msgspec

from gamelens.messages.journal import NotSent
from gamelens.messages.message_text import html_page, plain_text
from gamelens.messages.morning_message import MorningMessage

_TIMEOUT_S: Final = 30.0
MOST_BYTES: Final = 100_000
"""Limit of the HTML part. Mail programs cut what is longer."""
MOST_ATTACHED: Final = 5_000_000
"""Limit of an attached report. A larger one is named only: servers refuse large mails."""


class MailServer(msgspec.Struct, frozen=True):
    """An SMTP server and the address it writes to.

    User and password are empty for a server that wants none. Without *is_tls* the connection begins in plain text and
    changes to TLS where the server offers that.
    """

    host: str
    port: int
    to: str
    sender: str
    user: str = ""
    password: str = ""
    is_tls: bool = False

    def __repr__(self) -> str:
        return f"MailServer({self.host!r}, to={self.to!r})"


def mail_of(message: MorningMessage, server: MailServer, identity: str) -> EmailMessage:
    """Return the message as a mail, whose id is the same for each try of a day."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = message.title, server.sender, server.to
    mail["Message-ID"] = f"<{message.day}.{identity}@gamelens>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(plain_text(message))
    page = html_page(message)
    if len(page.encode()) <= MOST_BYTES:
        mail.add_alternative(page, subtype="html")
    for path in message.reports:
        if path.stat().st_size <= MOST_ATTACHED:
            mail.add_attachment(path.read_bytes(), maintype="text", subtype="html", filename=path.name)
    return mail


def send_mail(message: MorningMessage, server: MailServer, identity: str) -> None:
    """Hand the message to the server.

    Raises:
        NotSent: the server cannot be reached, or refuses the sender, the address or the mail.
        OSError: the connection ended before the server said whether it takes the mail.
    """
    with _connected(server) as connection:
        try:
            connection.send_message(mail_of(message, server, identity))
        except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError) as error:
            raise NotSent(f"{server.host} refused the mail to {server.to}{_code(error)}") from None
        except (smtplib.SMTPException, OSError) as error:
            raise OSError(f"{server.host} ended the connection ({type(error).__name__})") from None


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """Yield a connection that is logged in.

    Raises:
        NotSent: the server cannot be reached, or the server refuses the user. The password is not in the text.
    """
    kind = smtplib.SMTP_SSL if server.is_tls else smtplib.SMTP
    try:
        connection = kind(server.host, server.port, timeout=_TIMEOUT_S)
        connection.ehlo_or_helo_if_needed()
        if not server.is_tls and connection.has_extn("starttls"):
            connection.starttls()
        if server.user:
            connection.login(server.user, server.password)
    except (smtplib.SMTPException, OSError) as error:
        rule = f"cannot be used ({type(error).__name__}{_code(error)}): check host, port, user and password"
        raise NotSent(f"the mail server {server.host}:{server.port} {rule}") from None
    try:
        yield connection
    finally:
        with suppress(smtplib.SMTPException, OSError):
            connection.quit()


def _code(error: Exception) -> str:
    return f", code {error.smtp_code}" if isinstance(error, smtplib.SMTPResponseException) else ""
