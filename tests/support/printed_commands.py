"""The commands that the READMEs and the pages of the documentation print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
_PRINTED: Final = [*sorted((ROOT / "src").rglob("README.md")), *sorted((ROOT / "docs" / "pages").rglob("*.md"))]
_READMES: Final = [README, *(path.read_text(encoding="utf-8") for path in _PRINTED)]
BLOCKS: Final = [block for text in _READMES for block in re.findall(r"```(\w*)(?: \w+)?\n(.*?)```", text, re.DOTALL)]
"""Language and code of each block."""
_LINES: Final = [line for language, code in BLOCKS if language in ("", "console", "yaml") for line in code.splitlines()]
_TYPED: Final = re.compile(r"""(?<![\w/'])gamelens ((?:"[^"]*"|[^#&|;)"])+)""")
COMMANDS: Final = sorted({re.split(r"\s\d?[<>]", text)[0].strip() for line in _LINES for text in _TYPED.findall(line)})
"""What follows `gamelens` on each line, without where a shell sends what it prints."""
