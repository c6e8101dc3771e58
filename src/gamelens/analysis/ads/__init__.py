"""Ad revenue: income of networks and formats, their prices like for like, and lost ads.

Never asks a service. Open `ad_revenue` first.
"""

from gamelens.analysis.ads.ad_claims import (
    CONCENTRATED,
    SPREAD,
    concentration_claim,
    ecpm_advice,
    ecpm_claims,
    largest_share,
    unknown_networks,
)
from gamelens.analysis.ads.ad_revenue import (
    concentration,
    earnings,
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
    "concentration_claim",
    "earnings",
    "ecpm_advice",
    "ecpm_claims",
    "ecpm_index",
    "fill_rates",
    "largest_share",
    "per_player",
    "per_session",
    "unknown_networks",
    "unlisted_names",
    "waterfall",
    "with_canonical_names",
]
