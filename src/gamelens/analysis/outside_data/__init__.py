"""External tables: what they mean, joins, ad spend, special days.

Never asks a service; `analysis.files` reads the files. Open `outside_table` first.
"""

from typing import TYPE_CHECKING

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
from gamelens.errors import no_such_name

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


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
