"""Whether the rows of a query add up to its answer without some dimensions, and which query to send if not.

Rows of counts and money add up, those of players only over games (Wire 4.14, Adding up). For the others a request for
all values but the largest ones answers what `top` leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gamelens.catalog import Metric
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, QuerySpec

_IDS = frozenset({GAME_ID, STUDIO_ID})


def has_total(metric: Metric | None, dimensions: Collection[str]) -> bool:
    """Return whether rows that differ in *dimensions* add up to the answer without them."""
    if metric is None or metric.kinds != "plain" or any(field.combines is None for field in metric.fields):
        return False
    return metric.adds == "everywhere" or (metric.adds == "over games" and _IDS.issuperset(dimensions))


def rest_dimension(metric: Metric | None, spec: QuerySpec, dimensions: Sequence[str]) -> str | None:
    """Return the dimension whose values beyond *top* one more request answers, None where none can.

    It is the only one that is ranked, and the request is narrowed to one game or studio at most. *dimensions* are the
    columns of the rows.
    """
    ranked = spec.ranked(dimensions)
    within = [name for name in dimensions if name not in ranked]
    if not spec.other or metric is None or metric.kinds == "retention" or has_total(metric, ranked):
        return None
    if len(ranked) > 1 or ranked[0] == STUDIO_ID or not _IDS.issuperset(within):
        return None
    return ranked[0] if metric.kinds == "plain" or ranked[0] != GAME_ID else None


def additive_query(name: str, spec: QuerySpec) -> str:
    """Return the query that answers the same without summing, for the error."""
    by = f", by={list(spec.by)}" if spec.by else ""
    return (
        f'query("{name}"{by}, every="{spec.every}") with a Client(max_days=...) that does not cut it, '
        'or every="day", "week" or "month", one number for each'
    )


def query_without_total(name: str, spec: QuerySpec, dimensions: Sequence[str], *, has_rest: bool) -> str:
    """Return the queries that can be sent where rows do not add up to a total, for the error.

    *has_rest* is whether one request answers the rest of one bucket.
    """
    word = "other" if spec.other else "check"
    plain = f'query("{name}", by={list(spec.by)}) without {word}=True'
    others = [column for column in dimensions if column not in _IDS]
    if not spec.other or len(others) != 1 or others[0] not in spec.dimensions:
        return plain
    if has_rest:
        return f'{plain}, or every="all": the rest of one bucket takes one more request'
    within = f'top={{"{others[0]}": {spec.top_count}}}'
    return f'{plain}, or every="all" and {within}: the rest of each game or studio takes one more request'
