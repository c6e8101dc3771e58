"""Ad revenue: income of networks and formats, their prices like for like, and lost ads.

Never asks a service. Open `ad_revenue` first.
"""

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
