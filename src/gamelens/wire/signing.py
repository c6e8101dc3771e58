"""The Authorization header of the collector (Wire 1.4, Signature)."""

from __future__ import annotations

import base64
import hashlib
import hmac


def sign(body: bytes, *, secret_key: str) -> str:
    """Base64 of the HMAC SHA-256 of *body*, the very bytes that are sent (Wire 1.4, Signature)."""
    return base64.b64encode(hmac.digest(secret_key.encode(), body, hashlib.sha256)).decode("ascii")


def is_signed(body: bytes, signature: str, *, secret_key: str) -> bool:
    """True when *signature* is that of *body*; compared in constant time."""
    return hmac.compare_digest(sign(body, secret_key=secret_key).encode(), signature.encode("utf-8", "replace"))
