"""What stands in brackets of any script: (EUR), [net], （税込）, 【円】."""

from __future__ import annotations

import re
from typing import Final

BRACKETS: Final = re.compile(r"[(\[（【]([^()\[\]（）【】]*)[)\]）】]")
"""Finds a pair of brackets without others in it; its group is what they hold."""
