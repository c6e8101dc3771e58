"""Collector, Authentication."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from gamelens.wire.signing import is_signed, sign

SECRET = "16813a12f718bc5c620f56944e1abc3ea13ccbac"


@given(body=st.binary(max_size=200))
def test_what_is_signed_is_recognised(body: bytes) -> None:
    """Collector, Authentication 2."""
    assert is_signed(body, sign(body, secret_key=SECRET), secret_key=SECRET)


@given(body=st.binary(max_size=200))
def test_a_signature_is_32_bytes_in_base64(body: bytes) -> None:
    """Collector, Authentication 2."""
    assert len(base64.b64decode(sign(body, secret_key=SECRET), validate=True)) == 32


@given(body=st.binary(min_size=1, max_size=50), bit=st.integers(0, 399))
def test_one_changed_bit_is_noticed(body: bytes, bit: int) -> None:
    """Collector, Authentication 3: exactly the bytes sent."""
    changed = bytearray(body)
    changed[bit // 8 % len(body)] ^= 1 << bit % 8
    assert not is_signed(bytes(changed), sign(body, secret_key=SECRET), secret_key=SECRET)


def test_another_secret_is_noticed() -> None:
    assert not is_signed(b"[]", sign(b"[]", secret_key=SECRET), secret_key=SECRET[::-1])


@given(signature=st.text())
def test_any_text_may_stand_where_a_signature_should(signature: str) -> None:
    assert not is_signed(b"[]", signature, secret_key=SECRET)
