"""ECPM compared like for like: within the same game, country, format and day.

A network with a high eCPM may only be in the game, country or format that pays best. Here each network is compared with
the other named networks in each cell (one game, country, format and day), and cells are weighted by the impressions
that both sides have there (Mantel and Haenszel's rate ratio): a cell with a single network does not count.

The data has no players, so the uncertainty comes from the differences between days (`over_days`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import structs
from pandas import DataFrame, Series, notna

from gamelens.analysis.ads.canonical_names import named_for
from gamelens.analysis.claims.findings import Direction, Finding, reads
from gamelens.analysis.claims.rows import each_row
from gamelens.analysis.over_days import day_numbers, over_days
from gamelens.analysis.tidy_frames import column_of, ratio
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

WITHIN: Final = ("game", "country_code", "format")
COMPARABLE: Final = 0.5
"""Share of a network's impressions that must be comparable before it is advised to test it.

Choice: below a half, most of what it earns says nothing about where others earn too.
"""


@requires(frame=FrameRequirements(metrics=("ecpm",), every=("day",)))
@returns(
    KEYS,
    "impressions",
    named("impression_share", about="of these rows"),
    "ad_revenue ecpm",
    named("comparable_share", about="in cells where others have some too"),
    between(
        named("index", about="1.1 is 10% more than the others like for like", na="if nothing is comparable"),
        "NA with fewer than `over_days.FEWEST_DAYS` days",
        low="low",
        high="high",
    ),
    named("days", about="with comparable impressions"),
)
def ecpm_index(
    frame: DataFrame, by: str = "network", *, within: Sequence[str] = WITHIN, confidence: float = 0.95
) -> DataFrame:
    """Compare the eCPM of each value of *by* with the eCPM of the others, like for like.

        split = ["game", "country_code", "ilrd_adunit_format", "ilrd_network_name"]
        ads.ecpm_index(lens.query("ecpm", by=split, over="last 28 complete days"))

    The intervals hold together with the probability *confidence* (Bonferroni's correction for the number of rows),
    because the reader picks the best of several. They cover the price on days like these, not what more impressions of
    a network would earn, which only a test can tell.

    Args:
        frame: ecpm by day, *by* and *within*. Networks and formats get their canonical names.
        by: what is compared.
        within: what must be equal, beside the day. A game with a single network does not count.
        confidence: of all intervals together.

    Null is left out. Highest index first. Claims: "ecpm", one a row, and "advice on ecpm": which one to test with
    more impressions, if one surely pays more and can be compared for half of its impressions.

    Raises:
        BadQuery: a column is missing.
    """
    keys = [*within, "timestamp"]
    frame = named_for(frame, [by, *within])
    for name in (by, *keys):
        if name not in frame:
            query = f"query ecpm by day, {', '.join(within)} and {by}"
            raise BadQuery("frame", name, f"is not a column of the frame: {query}", [*map(str, frame.columns)])
    count, money = column_of(frame, "ilrd_revenue", "event_count"), column_of(frame, "ilrd_revenue", "sum")
    named = frame[frame[by].notna()]
    result = sum_over(named, by, [count, money]).rename(columns={count: "impressions", money: "ad_revenue"})
    total = Series(result["impressions"].sum(), index=result.index)
    result["impression_share"] = ratio(result["impressions"], total)
    result["ecpm"] = 1000 * ratio(result["ad_revenue"], result["impressions"])
    days = _cells(named, by, keys, count, money).groupby([by, "timestamp"], observed=True).sum()
    result = result.join(_compared(days, result[by], confidence))
    return result.sort_values("index", ascending=False, na_position="last", ignore_index=True)


@reads("ads.ecpm_index")
def _read_index(index: DataFrame, by: str, within: list[str]) -> Iterator[Finding]:
    """Say of each value of *by* how it pays like for like, and which to test with more impressions."""
    cell = [{"country_code": "country", "ad_format": "format"}.get(name, name) for name in [*within, "day"]]

    def of_index(row: Mapping[Any, Any]) -> dict[str, Any]:
        return {"by": by, "cell": cell, "comparable_share": row["comparable_share"], "days": row["days"]}

    found = [*each_row(index, by, "index", kind="ecpm", numbers=of_index)]
    rows = index.to_dict("records")
    yield from (_with_reason(finding, row) for finding, row in zip(found, rows, strict=True))
    known = (index["comparable_share"] >= COMPARABLE) & index["low"].notna()
    numbers: dict[str, Any] = {"by": by, "values": int(known.sum())}
    if not (index["low"].where(known) > 1).any():
        is_short = (index["low"].isna() & index["index"].notna()).any()
        case = "none_better" if known.any() else "few_days" if is_short else "not_comparable"
        direction: Direction = "no clear difference" if known.any() else "unknown"
        yield Finding(kind="advice on ecpm", case=case, direction=direction, unit="ratio", numbers=numbers)
        return
    best = int(index["low"].where(known).argmax())
    numbers |= {"name": found[best].numbers["name"], "impression_share": index["impression_share"].iloc[best]}
    yield structs.replace(found[best], kind="advice on ecpm", case="test", numbers=numbers)


def _with_reason(finding: Finding, row: Mapping[Any, Any]) -> Finding:
    """Return *finding*, with the reason where it has no interval."""
    if finding.case != "unknown":
        return finding
    if not row["impressions"]:
        return structs.replace(finding, case="no_impressions", judged=None)
    if notna(row["index"]):
        return structs.replace(finding, case="few_days", judged="counted")
    return structs.replace(finding, case="no_income" if row["comparable_share"] else "unknown", judged=None)


def _cells(named: DataFrame, by: str, keys: list[str], count: str, money: str) -> DataFrame:
    """Return a row for each cell and value of *by*: its own money, and what the others bring.

    Columns: *by*, timestamp, own (impressions), shared (those where others have some), paid and usual (USD, at the
    weight of the cell).
    """
    sums = named.groupby([*keys, by], observed=True, dropna=False, sort=False)[[count, money]].sum().reset_index()
    cell = sums.groupby(keys, dropna=False, sort=False).ngroup()
    impressions, paid = sums[count].to_numpy(dtype="float64"), sums[money].to_numpy(dtype="float64")
    whole, whole_paid = np.bincount(cell, impressions), np.bincount(cell, paid)
    others = whole[cell] - impressions
    is_shared = (impressions > 0) & (others > 0)
    weight = np.divide(1.0, whole[cell], where=is_shared, out=np.zeros_like(impressions))
    usual = (whole_paid[cell] - paid) * impressions * weight
    return sums[[by, "timestamp"]].assign(
        own=impressions, shared=impressions * is_shared, paid=paid * others * weight, usual=usual
    )


def _compared(days: DataFrame, names: Series[Any], confidence: float) -> DataFrame:
    """Return comparable_share, index, low, high and days of each value of *names*, in their order."""
    wide = {name: days[name].unstack("timestamp").reindex(names).fillna(0.0) for name in days}
    impressions, shared, paid, usual = (
        wide[name].to_numpy(dtype="float64") for name in ("own", "shared", "paid", "usual")
    )
    index = ratio(Series(paid.sum(axis=1)), Series(usual.sum(axis=1))).to_numpy(dtype="float64")
    size = paid + np.nan_to_num(index)[:, None] * usual  # the others' money is as random as the network's
    estimates = over_days(paid, usual, day_numbers(wide["own"].columns), size=size, is_balanced=False)
    tests = max(1, int((shared > 0).any(axis=1).sum()))
    low, high = estimates.bounds(1 - (1 - confidence) / tests)
    share = ratio(Series(shared.sum(axis=1)), Series(impressions.sum(axis=1)))
    columns = {"comparable_share": share, "index": index, "low": low, "high": high}
    return DataFrame({**columns, "days": (shared > 0).sum(axis=1)})
