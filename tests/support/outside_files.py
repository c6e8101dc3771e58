"""Outside tables as files of tests."""

from __future__ import annotations

from pathlib import Path


def written(path: Path, header: str, *rows: str) -> Path:
    """Write a table and return *path*."""
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path
