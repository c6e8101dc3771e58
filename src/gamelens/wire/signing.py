"""The Authorization header of the collector (Wire 1.4, Signature)."""

from __future__ import annotations

import base64
import hashlib
import hmac


def sign(body: bytes, *, secret_key: str) -> str:
    """Return the base64 of the HMAC-SHA256 of *body*, the bytes as sent (Wire 1.4, Signature)."""
    return base64.b64encode(hmac.digest(secret_key.encode(), body, hashlib.sha256)).decode("ascii")


def is_signed(body: bytes, signature: str, *, secret_key: str) -> bool:
    """Return whether *signature* belongs to *body*, in constant time."""
    return hmac.compare_digest(sign(body, secret_key=secret_key).encode(), signature.encode("utf-8", "replace"))
