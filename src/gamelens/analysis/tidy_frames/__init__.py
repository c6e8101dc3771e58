"""Building blocks of every analysis on tidy frames: columns, names, sums and receipts.

Never asks a service and never changes a frame. Open `frame_columns` first.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.tidy_frames.frame_columns import (
    UNKNOWN,
    column_of,
    dimension_columns,
    display_values,
    label_columns,
    metric_sums,
    queried_metrics,
    ratio,
    value_columns,
    warn_of_mixture,
    with_ids,
    with_receipt,
    with_receipts_of,
)
from gamelens.errors import no_such_name

__all__ = [
    "UNKNOWN",
    "column_of",
    "dimension_columns",
    "display_values",
    "label_columns",
    "metric_sums",
    "queried_metrics",
    "ratio",
    "value_columns",
    "warn_of_mixture",
    "with_ids",
    "with_receipt",
    "with_receipts_of",
]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
