"""The columns and types of an answer as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from gamelens.catalog import find_metric

TIMESTAMP: Final = "timestamp"
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
OTHER: Final = "(other)"
ARROW_TYPES: Final = {"count": pa.int64(), "number": pa.float64()}


def schema(metric: str, dimensions: Sequence[str]) -> pa.Schema:
    """Return the columns of *metric* by *dimensions*, as far as the catalog knows its fields.

    A row has one value per name: a field with the name of a requested dimension is left out.
    """
    known = find_metric(metric)
    fields = [field for field in known.fields if field.name not in dimensions] if known is not None else []
    return pa.schema(
        [
            (TIMESTAMP, TIMESTAMP_TYPE),
            *((name, pa.string()) for name in dimensions),
            *((field.name, ARROW_TYPES[field.kind]) for field in fields),
        ]
    )
