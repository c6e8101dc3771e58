"""Comparison of frames with the ledger: counts exactly, floats to a relative 1e-9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from gamelens.catalog import METRICS, find_metric

PLAIN = [name for name, metric in METRICS.items() if metric.kinds == "plain"]
PER_GAME = [name for name, metric in METRICS.items() if metric.kinds == "per game"]


def assert_equals_ledger(
    frame: pd.DataFrame, expected_rows: list[dict[str, Any]], metric: str, dimensions: list[str]
) -> None:
    """Assert that *frame* has exactly the rows of the ledger, and at least one."""
    answered = {_key(row, dimensions): row for row in frame.to_dict("records")}
    expected = {_key(row, dimensions): row for row in expected_rows}
    assert answered.keys() == expected.keys()
    assert expected
    known = find_metric(metric)
    assert known is not None
    assert {known.columns[name] for name in known.shown} <= {*frame.columns}
    for key, row in expected.items():
        for field in (field for field in known.fields if known.columns[field.name] in frame):
            answer, true = answered[key][known.columns[field.name]], row[field.name]
            if true is None:
                assert pd.isna(answer), (key, field.name)
            else:
                assert answer == (true if field.kind == "count" else pytest.approx(true, rel=1e-9)), (key, field.name)


def _key(row: Mapping[Any, Any], dimensions: list[str]) -> tuple[Any, ...]:
    return (pd.Timestamp(row["timestamp"]), *(None if pd.isna(row[name]) else row[name] for name in dimensions))
