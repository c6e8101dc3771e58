"""Retention rates by install day and age, with their uncertainty.

Reads the frame of `Client.retention`: timestamp (datetime64[us, UTC], the install day), age (Int64, days), the split
(category), retention (float64, 0 to 1, NA where the age is not reached), installs (Int64), returned (Int64).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan, sqrt
from typing import Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of, concat_groups
from gamelens.analysis.retention.day_variation import chance_of_days, day_variance, effective_installs
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames import dimension_columns, display_values, ratio, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import POOLED_RETENTION, RETENTION, requires
from gamelens.analysis.tidy_frames.results import with_cells_of
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.analysis.wilson_intervals import wilson

_COLUMNS = ("timestamp", "age", "retention", "installs", "returned")


def is_retention_frame(frame: DataFrame) -> bool:
    """Return whether *frame* has the columns of `Client.retention`."""
    return all(name in frame for name in _COLUMNS)


_SPREAD: Final = Column(
    "spread",
    "number",
    about="standard deviation of a day's retention, relative to it: 0.1 is a D1 of 40% that is 36 to 44% on two "
    "days of "
    "three; 0 if chance explains all",
    na="with fewer than two install days",
)
_CHANCE: Final = named(
    "p_value",
    about="of the first age's differences between days under chance alone",
    na="with fewer than two install days",
)


@requires(frame=POOLED_RETENTION)
@returns(
    "timestamp age",
    KEYS,
    named("retention", about="weighted by installs", na="where the age is not reached or there were no installs"),
    "installs returned",
)
def pooled(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return one row for each install day (or week, month), age and value of *by*, other splits pooled.

    For example:

        cohorts = lens.retention([1, 7], by=["game", "platform"], over="last 28 complete days")
        retention.pooled(cohorts, by="platform")
    """
    return _pooled(frame, ["timestamp", "age", *with_ids(frame, by)])


@requires(frame=POOLED_RETENTION)
def cohort_matrix(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return retention (float64, 0 to 1) by install day, week or month (rows) and age (columns).

        cohorts = lens.retention(range(1, 8), by="game", over="last 14 complete days")
        retention.cohort_matrix(cohorts, by="game")

    NaN where the age is not reached. With *by*, the index has two levels: the value, then the install day; without it a
    split in the frame is pooled, weighted by installs.
    """
    cohorts = pooled(frame, by)
    index = [*([by] if by else []), "timestamp"]
    matrix = cohorts.set_index([*index, "age"])["retention"].unstack("age")
    return with_cells_of(with_receipts_of(matrix.sort_index(axis=1), frame), "retention", matrix.columns)


@requires(frame=RETENTION)
@returns(
    KEYS,
    "age",
    between("retention", low="low", high="high"),
    "installs returned",
    named("cohorts", about="install days that have reached the age"),
    Column(
        "segments",
        "count",
        about="values of the other dimensions that are pooled, weighted by installs: those with install days "
        "that have reached the age; 1 without other dimensions",
    ),
)
def average_curve(
    frame: DataFrame, by: str | None = None, *, confidence: float = 0.95, widened: bool = False
) -> DataFrame:
    """Return the share of all installs that returned at each age, with a Wilson interval.

        cohorts = lens.retention([1, 3, 7, 14], by="platform", over="last 28 complete days")
        retention.average_curve(cohorts, by="platform")

    A cohort counts at an age only if it has reached it, so later ages rest on fewer installs.

    The interval covers the share of these install days' players, up to chance. *widened* covers the mean of install
    days: the retention to expect of a day that is like these, whatever its size. The two differ if days differ by more
    than chance explains (`day_spread`): then *widened* counts only as many installs as would be as uncertain by chance
    alone, and fewer still the fewer days tell how much days differ and the more successive days may be alike. One day
    with half of all players makes it wide: the share is then mostly that day's. Intervals of 95% hold that mean in at
    least 93% of simulated months of install days, equal or not (`tests/bench`), with three install days in 89%.

    Claims: "retention level", one a row.
    """
    split = with_ids(frame, by)
    reached_cells = frame[frame["retention"].notna() & (frame["installs"] > 0)]
    curve = _pooled(reached_cells, [*split, "age"])
    reached = reached_cells.groupby([*split, "age"], observed=True, dropna=False)["timestamp"].nunique()
    curve = curve.merge(reached.astype("Int64").rename("cohorts").reset_index(), on=[*split, "age"])
    curve = curve.merge(_effective(frame, by, confidence), on=[*split, "age"], how="left")
    trials = curve["effective" if widened else "installs"].astype("float64")
    curve["low"], curve["high"] = wilson(curve["retention"] * trials, trials, confidence=confidence)
    segments = reached_cells[[*dict.fromkeys([*split, "age", *dimension_columns(frame)])]].drop_duplicates()
    counts = segments.groupby([*split, "age"], observed=True, dropna=False).size().astype("Int64")
    curve = curve.merge(counts.rename("segments").reset_index(), on=[*split, "age"])
    order = [*split, "age", "retention", "low", "high", "installs", "returned", "cohorts", "segments"]
    return curve[order].sort_values([*split, "age"], ignore_index=True)


@reads("retention.average_curve", row_by_row=True)
def _read_levels(curve: DataFrame, by: str | None, widened: bool) -> Iterator[Finding]:
    """State each level. It is compared with nothing, so it has no direction."""
    names = display_values(curve[by]) if by else Series("", index=curve.index)
    for name, row in zip(names, curve.to_dict("records"), strict=True):
        segments = row.get("segments", 1)
        yield Finding(
            kind="retention level",
            case="of_value" if by else "of_all",
            subject={by: name} if by else {},
            size=row["retention"],
            low=row["low"],
            high=row["high"],
            unit="share",
            judged="days" if widened else "players",
            numbers={"age": row["age"], "name": name, "segments": segments if segments > 1 else None},
        )


@requires(frame=RETENTION)
@returns(
    named("age", about="the first one"),
    between(
        named("retention", about="of all install days that have reached it"),
        "least and most retention of an install day, counted",
        low="low",
        high="high",
    ),
    named("days", about="install days that have reached the age"),
    _SPREAD,
    _CHANCE,
    Column("last_age", "count"),
    Column("reached", "count", about="install days that have reached the last age"),
    Column("installed", "count", about="all install days"),
)
def day_range(frame: DataFrame) -> DataFrame:
    """Return how far apart install days are at the first age, in one row; all splits are pooled.

        retention.day_range(lens.retention([1, 7], over="last 28 complete days"))

    No row without players. Claims: "variation of install days".
    """
    cohorts = _pooled(frame, ["timestamp", "age"])
    first, last = (cohorts[cohorts["age"] == end] for end in (cohorts["age"].min(), cohorts["age"].max()))
    known = first[first["retention"].notna()]
    shares = known["retention"]
    spread = day_spread(frame)
    row = {
        "age": first["age"].min(),
        "retention": known["returned"].sum() / known["installs"].sum() if len(known) else nan,
        "low": shares.min(),
        "high": shares.max(),
        "days": len(shares),
        "spread": spread["spread"].max(),
        "p_value": spread["p_value"].max(),
        "last_age": last["age"].max(),
        "reached": last["retention"].notna().sum(),
        "installed": len(last),
    }
    return DataFrame([row] if len(cohorts) else [], columns=[*row])


@reads("retention.day_range")
def _read_day_range(found: DataFrame) -> Iterator[Finding]:
    """Say whether install days differ by more than chance: the test of homogeneity at the first age."""
    if found.empty:
        yield Finding(kind="variation of install days", case="nobody", unit="ratio")
    for row in found.to_dict("records"):
        case = "too_early" if not row["days"] else "one_day" if isnan(row["p_value"]) else "alike"
        is_higher = row["p_value"] < LEVEL
        yield Finding(
            kind="variation of install days",
            case="differ" if is_higher else case,
            direction="higher" if is_higher else "no clear difference" if case == "alike" else "unknown",
            size=row["spread"],
            unit="ratio",
            judged="players",
            numbers={
                "least": row["low"],
                "most": row["high"],
                **{name: row[name] for name in ("age", "days", "p_value", "last_age", "reached", "installed")},
            },
        )


@requires(frame=RETENTION)
@returns(KEYS, named("cohorts", about="install days that have reached an age"), _SPREAD, _CHANCE)
def day_spread(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return the variation of install days around the common curve beyond chance.

    For example:

        cohorts = lens.retention([1, 3, 7], by="game", over="last 28 complete days")
        retention.day_spread(cohorts, by="game")
    """
    blocks = [(key, _spread_frame(cohorts)) for key, cohorts in cohorts_of(frame, by)]
    empty = DataFrame({"cohorts": Series(dtype="Int64")}).assign(spread=0.0, p_value=0.0)
    return concat_groups(frame, by, blocks, like=empty)


@requires(frame=RETENTION)
@returns(KEYS, Column("half", "category", about="cut in the middle", values=("earlier", "later")))
def by_half(frame: DataFrame) -> DataFrame:
    """Return *frame* with a column that separates earlier from later install days.

        cohorts = lens.retention([1, 7], over="last 28 complete days")
        retention.by_half(cohorts)

    It has the columns of the frame as well. The later half has no ages its cohorts have not reached.
    """
    days = frame["timestamp"].drop_duplicates().sort_values()
    is_later = frame["timestamp"] >= days.iloc[len(days) // 2] if len(days) > 1 else frame["timestamp"].isna()
    halves = is_later.map({False: "earlier", True: "later"})
    return frame.assign(half=pd.Categorical(halves, categories=["earlier", "later"], ordered=True))


@requires(frame=RETENTION)
@returns("timestamp", KEYS, "installs")
def cohort_sizes(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return the new players of each install day.

        cohorts = lens.retention([1], by="country_code", over="last 28 complete days")
        retention.cohort_sizes(cohorts, by="country_code")

    Claims: "installs", of all rows.
    """
    keys = ["timestamp", *dimension_columns(frame)]
    sizes = frame.groupby(keys, observed=True, dropna=False)["installs"].max().reset_index()
    return sum_over(sizes, ["timestamp", *with_ids(frame, by)], ["installs"])


@reads("retention.cohort_sizes")
def _read_sizes(sizes: DataFrame, by: str | None) -> Iterator[Finding]:
    """Say how many players installed, and the value of *by* with most of them."""
    total, days = int(sizes["installs"].sum()), int(sizes["timestamp"].nunique())
    names = display_values(sizes[by]) if by else Series("", index=sizes.index)
    won = sizes.groupby(names, sort=False)["installs"].sum().sort_values(ascending=False)
    case = "nobody" if not total else "all" if not by else "most" if len(won) > 1 else "alone"
    yield Finding(
        kind="installs",
        case=case,
        subject={by: str(won.index[0])} if by and total else {},
        direction="higher" if case in ("most", "alone") else "unknown",
        size=float(won.iloc[0]) if total else nan,
        unit="players",
        judged="counted",
        numbers={"total": total, "days": days, "name": won.index[0] if total else None},
    )


def _spread_frame(cohorts: CohortTriangle) -> DataFrame:
    """Return the row of `day_spread` for one group."""
    days = len(cohorts.installs)
    spread = sqrt(day_variance(cohorts).pooled) if days > 1 else nan
    return DataFrame({"cohorts": pd.array([days], dtype="Int64"), "spread": spread, "p_value": chance_of_days(cohorts)})


def _effective(frame: DataFrame, by: str | None, confidence: float) -> DataFrame:
    """Return the effective installs at each age, for each group."""
    empty = DataFrame({"age": Series(dtype="Int64"), "effective": Series(dtype="float64")})
    blocks = []
    for key, cohorts in cohorts_of(frame, by):
        effective = effective_installs(cohorts, day_variance(cohorts), confidence=confidence)
        blocks.append((key, DataFrame({"age": cohorts.ages, "effective": effective})))
    return concat_groups(frame, by, blocks, like=empty).astype({"age": "Int64"})


def _pooled(frame: DataFrame, keys: list[str]) -> DataFrame:
    """Return retention, installs and returned of the groups of *keys*, weighted by installs."""
    is_known = frame["retention"].notna()
    parts = frame.assign(returned=frame["returned"].where(is_known), reached=frame["installs"].where(is_known))
    columns = ["installs", "returned", "reached"]
    sums = parts.groupby(keys, observed=True, dropna=False)[columns].sum(min_count=1).reset_index()
    sums["retention"] = ratio(sums["returned"], sums["reached"])
    return with_receipts_of(sums[[*keys, "retention", "installs", "returned"]], frame)
