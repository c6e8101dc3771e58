"""Signatures of collector requests (Wire 1.4, Signature)."""

from __future__ import annotations

import base64

from hypothesis import example, given
from hypothesis import strategies as st

from gamelens.wire.signing import is_signed, sign

SECRET = "16813a12f718bc5c620f56944e1abc3ea13ccbac"


@given(body=st.binary(max_size=200))
def test_a_signature_is_valid_for_the_signed_body(body: bytes) -> None:
    """A body and its own signature are accepted (Wire 1.4, Signature)."""
    assert is_signed(body, sign(body, secret_key=SECRET), secret_key=SECRET)


@given(body=st.binary(max_size=200))
def test_a_signature_is_32_bytes_in_base64(body: bytes) -> None:
    """A signature is 32 bytes, the length of a SHA-256 digest, in Base64.

    Wire 1.4, Signature.
    """
    assert len(base64.b64decode(sign(body, secret_key=SECRET), validate=True)) == 32


@given(body=st.binary(min_size=1, max_size=50), bit=st.integers(0, 399))
def test_one_changed_bit_invalidates_the_signature(body: bytes, bit: int) -> None:
    """A body that differs from the signed one in a single bit is not accepted.

    Wire 1.4, Signature.
    """
    changed = bytearray(body)
    changed[bit // 8 % len(body)] ^= 1 << bit % 8
    assert not is_signed(bytes(changed), sign(body, secret_key=SECRET), secret_key=SECRET)


def test_another_secret_invalidates_the_signature() -> None:
    """A signature made with another secret key is not accepted (Wire 1.4, Signature)."""
    assert not is_signed(b"[]", sign(b"[]", secret_key=SECRET), secret_key=SECRET[::-1])


@given(signature=st.text())
@example("\ud800")
def test_any_text_may_be_checked_as_a_signature(signature: str) -> None:
    """A text that is not Base64, or not even Unicode, is a wrong signature and not an error.

    Wire 1.4, Signature.
    """
    assert not is_signed(b"[]", signature, secret_key=SECRET)
