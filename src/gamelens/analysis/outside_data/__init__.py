"""External tables: what they mean, joins, ad spend, special days.

Never asks a service; `analysis.files` reads the files. Open `outside_table` first.
"""

from gamelens.analysis.outside_data.acquisition import (
    cost_per_install,
    in_dollars,
    ltv_against_cpi,
    payback_ages,
    rank_correlation,
    return_on_spend,
    roas,
)
from gamelens.analysis.outside_data.roles import formats
from gamelens.analysis.outside_data.special_days import compare_with_weekdays

__all__ = [
    "compare_with_weekdays",
    "cost_per_install",
    "formats",
    "in_dollars",
    "ltv_against_cpi",
    "payback_ages",
    "rank_correlation",
    "return_on_spend",
    "roas",
]
