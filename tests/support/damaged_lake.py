"""Damage to files."""

from __future__ import annotations

from pathlib import Path
from random import Random


def flip_bit(path: Path, random: Random) -> None:
    """Flip one bit of the file at *path*."""
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
