"""What a wheel has beside the package: the notebooks, and nothing else that lies in their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Notebooks(BuildHookInterface):
    """Ships every notebook, for `gamelens demo`, `lab` and `report` to find."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to what is built."""
        for notebook in Path(self.root, "notebooks").glob("*.ipynb"):
            build_data["force_include"][str(notebook)] = f"gamelens/notebook/shipped/{notebook.name}"
