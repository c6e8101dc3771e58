"""Ad revenue: income of networks and formats, their prices like for like, and lost ads.

Never asks a service. Open `ad_revenue` first.
"""

from gamelens.analysis.ads.ad_claims import (
    CONCENTRATED,
    SPREAD,
    concentration_claim,
    earned_claim,
    ecpm_advice,
    ecpm_claims,
    first_share,
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
from gamelens.analysis.ads.rate_claims import (
    click_claim,
    empty_break_claims,
    empty_break_worth,
    fill_claim,
    per_player_claims,
)

__all__ = [
    "CONCENTRATED",
    "SPREAD",
    "canonical_values",
    "click_claim",
    "concentration",
    "concentration_claim",
    "earned_claim",
    "earnings",
    "ecpm_advice",
    "ecpm_claims",
    "ecpm_index",
    "empty_break_claims",
    "empty_break_worth",
    "fill_claim",
    "fill_rates",
    "first_share",
    "largest_share",
    "per_player",
    "per_player_claims",
    "per_session",
    "unknown_networks",
    "unlisted_names",
    "waterfall",
    "with_canonical_names",
]
