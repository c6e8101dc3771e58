"""What results say, for tests."""

from __future__ import annotations

from typing import Any

from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.tidy_frames.results import as_result


def said(result: DataFrame) -> list[Any]:
    """Return the claims of *result* as tuples with named fields."""
    return [*claims.of(result).itertuples()]


def as_made_by(analysis: str, frame: DataFrame, **arguments: Any) -> DataFrame:
    """Return *frame*, written by hand, as a result of *analysis*."""
    return as_result(frame, analysis, arguments)
