"""Results in words: what a result says as rows, and the sentences of these rows.

`of(result)` is a frame of claims, `words.toml` has the templates. Readers stand beside the analyses they read; open
`findings` first.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.claims.claims_frame import of
from gamelens.analysis.claims.findings import Direction, direction_of
from gamelens.analysis.claims.key_numbers import KeyNumber
from gamelens.errors import no_such_name

__all__ = ["Direction", "KeyNumber", "direction_of", "of"]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
