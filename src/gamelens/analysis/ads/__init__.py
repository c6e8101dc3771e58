"""Ad revenue: income of networks and formats, their prices like for like, and lost ads.

Never asks a service. Open `ad_revenue` first.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.ads.ad_revenue import (
    CONCENTRATED,
    SPREAD,
    concentration,
    earnings,
    empty_breaks,
    fill_rates,
    per_player,
    per_session,
    waterfall,
)
from gamelens.analysis.ads.canonical_names import canonical_values, unlisted_names, with_canonical_names
from gamelens.analysis.ads.ecpm_index import ecpm_index
from gamelens.errors import no_such_name

__all__ = [
    "CONCENTRATED",
    "SPREAD",
    "canonical_values",
    "concentration",
    "earnings",
    "ecpm_index",
    "empty_breaks",
    "fill_rates",
    "per_player",
    "per_session",
    "unlisted_names",
    "waterfall",
    "with_canonical_names",
]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
