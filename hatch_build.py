"""What a wheel has beside the package: the notebooks, and the README as a package index can show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"<picture>.*?<img alt=\"([^\"]*)\" src=\"([^\"]+)\">.*?</picture>", re.DOTALL)
_FILE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)")


class Notebooks(BuildHookInterface):
    """Ships every notebook, for `gamelens demo`, `lab` and `report` to find."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to what is built."""
        for notebook in Path(self.root, "notebooks").glob("*.ipynb"):
            build_data["force_include"][str(notebook)] = f"gamelens/notebook/shipped/{notebook.name}"


class Description(MetadataHookInterface):
    """The README for a package index, which knows no file beside it and shows pictures of web servers only."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description, with pictures and links at the configured address, or with their texts without one."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": described(text, str(self.config.get("address", ""))),
        }


def described(readme: str, address: str) -> str:
    """Return *readme* with its pictures and links below *address*, or as texts if that is empty."""
    if not address:
        return _FILE_LINK.sub(r"\1", _PICTURE.sub(r"*\1*", readme))
    pictured = _PICTURE.sub(rf"![\1]({address}/\2)", readme)
    return _FILE_LINK.sub(rf"[\1]({address}/\2)", pictured)
