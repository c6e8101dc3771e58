"""The sizes of arms, the newest of them, and whether its players were split as intended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Direction, Finding, reads
from gamelens.analysis.experiments.arm_outcomes import EXPERIMENT, VARIANT, groups
from gamelens.analysis.experiments.constants import FEWEST_EXPECTED, SUSPECT
from gamelens.analysis.tidy_frames import column_of, ratio, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns
from gamelens.errors import BadQuery

_TESTS: Final = ("p_value", "p_days", "p_worst_day")
_DAY: Final = "datetime64[us, UTC]"


@requires(installs=FrameRequirements(metrics=("new_users",), splits=(EXPERIMENT, VARIANT)))
@returns("ab_id ab_variant_id players")
def arms(installs: DataFrame) -> DataFrame:
    """Return the arms of every experiment, from new_users by ab_id and ab_variant_id.

        installs = lens.query("new_users", by=["ab_id", "ab_variant_id"], over="last 28 complete days")
        experiments.arms(installs)

    Players of no experiment are left out. Largest experiment first, its arms by name.

    Claims: "experiments".
    """
    count = column_of(installs, "new_users", "new_users")
    known = installs[installs[EXPERIMENT].notna() & installs[VARIANT].notna()]
    result = sum_over(known, [EXPERIMENT, VARIANT], [count]).rename(columns={count: "players"})
    size = result.groupby(EXPERIMENT, observed=True)["players"].transform("sum")
    result = result.assign(size=size).sort_values(["size", EXPERIMENT, VARIANT], ascending=[False, True, True])
    return result.drop(columns="size").reset_index(drop=True)


@requires(frame=ANY)
def newest_arms(frame: DataFrame, arm: str, by: str | None = None, *, most: int = 2) -> DataFrame:
    """Return the rows of the arms of each value of *by* that began last, *most* of them.

        by_build = lens.retention([1], by=["game", "first_build"], over="last 28 complete days")
        experiments.newest_arms(by_build, "first_build", by="game")

    Such as the newest builds. An arm begins on its first install day with players. Players of no arm are left out.
    *frame* is one of `Client.retention`, or has timestamp, the arm and players.

    Raises:
        BadQuery: a column is missing.
    """
    keys = with_ids(frame, by)
    for name in (arm, "timestamp"):
        if name not in frame:
            raise BadQuery("frame", name, "is not a column of the frame", [*map(str, frame.columns)])
    size = next((name for name in ("installs", "players") if name in frame), None)
    has_players = frame[arm].notna() & (frame[size] > 0 if size else True)
    began = frame[has_players].groupby([*keys, arm], observed=True, dropna=False, sort=False)["timestamp"].min()
    order = began.reset_index().sort_values("timestamp", kind="stable")
    newest = order.groupby(keys, observed=True, dropna=False).tail(most) if keys else order.tail(most)
    rows = frame.merge(newest[[*keys, arm]], on=[*keys, arm], how="inner")
    return with_receipts_of(rows.astype(dict.fromkeys([*keys, arm], "category")), frame)


@reads("experiments.arms")
def _read_arms(sizes: DataFrame) -> Iterator[Finding]:
    """Say how many experiments and new players there are."""
    names, total = [*dict.fromkeys(sizes[EXPERIMENT].astype(str))], int(sizes["players"].sum())
    yield Finding(
        kind="experiments",
        case="some" if total else "none",
        size=float(total),
        unit="players",
        judged="counted" if total else None,
        numbers={"experiments": len(names), "names": names},
    )


@requires(installs=ANY, expected=ANY)
@returns(
    KEYS,
    "players share expected_share expected_players",
    named("p_value", about="of the whole split", na="of a single arm"),
    named("p_days", about="of all its days"),
    Column("worst_day", "day"),
    named("p_worst_day", about="corrected for the number of days"),
    named("is_suspect", about="one of p_value, p_days, p_worst_day is below 0.001", na="of a single arm"),
)
def sample_ratio(
    installs: DataFrame,
    expected: Mapping[str, float] | DataFrame | None = None,
    *,
    by: str | Sequence[str] | None = None,
) -> DataFrame:
    """Compare the split of players with the *expected* weights, in total and day by day.

        split, is_gate = ["ab_id", "ab_variant_id"], gl.dim.ab_id == "first_gate"
        installs = lens.query("new_users", by=split, where=is_gate, over="last 28 complete days")
        experiments.sample_ratio(installs, {"ctrl": 1, "late_gate": 1})

    The tests are Pearson's. A suspect split means that players were lost on the way to one arm, so the players left
    differ in more than number, and no result can be trusted.

    Args:
        installs: new_users by day and variant, or the frame of `arms`, which has no days.
        expected: weights by variant; without them the arms should be equally large. A planned ramp is a frame of weight
            by timestamp and ab_variant_id. With *expected* there must be one experiment, and a variant without players
            gets a row too.
        by: dimensions to check within, such as country_code: in total a country that loses a third of an arm is rarely
            seen. P-values are corrected for the number of segments of the experiment (Bonferroni).

    Keys are ab_id and *by*, if there, and ab_variant_id. Claims: "sample ratio", one for each experiment, or for each
    of its segments that are suspect.

    Raises:
        BadQuery: *expected* lacks a variant or a day, or has a weight below 0; there are several experiments; or a
            column of *by* is missing.
    """
    if expected is not None and EXPERIMENT in installs and installs[EXPERIMENT].dropna().nunique() > 1:
        several = sorted(map(str, installs[EXPERIMENT].dropna().unique()))
        raise BadQuery("arms", several, "are several experiments: check one at a time with expected=")
    segments = [by] if isinstance(by, str) else list(by or ())
    for name in segments:
        if name not in installs:
            raise BadQuery("by", name, "is not a column of the frame", [*map(str, installs.columns)])
    keys = [name for name in (EXPERIMENT, *segments) if name in installs]
    sizes = _with_targets(_sizes(installs, keys), expected, keys)
    checks = [_checked(rows, keys) for rows in groups(sizes, keys)]
    names = [*keys, VARIANT] if VARIANT in sizes else keys
    numbers = ["share", "expected_share", "expected_players", "p_value", "p_days"]
    columns = [*names, "players", *numbers, "worst_day", "p_worst_day"]
    result = pd.concat(checks, ignore_index=True) if checks else DataFrame(columns=columns)
    result = result[columns].astype(dict.fromkeys(_TESTS, "float64") | {"worst_day": _DAY})
    if segments:
        tested = result[result["p_value"].notna()].drop_duplicates(keys)
        split = result[EXPERIMENT].astype("object") if EXPERIMENT in result else Series("", result.index)
        looks = split.map(split.loc[tested.index].value_counts())
        result[[*_TESTS]] = result[[*_TESTS]].mul(looks, axis=0).clip(upper=1.0)
    is_suspect = (result[[*_TESTS]] < SUSPECT).any(axis=1)
    return result.assign(is_suspect=is_suspect)


@reads("experiments.sample_ratio")
def _read_split(checked: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say of each experiment whether its split can be trusted, in which segments it cannot."""
    segments = [by] if isinstance(by, str) else by or []
    for rows in groups(checked, [EXPERIMENT]):
        suspects = rows[rows["is_suspect"].fillna(False).astype(bool)]
        for judged in groups(suspects, segments) if segments and len(suspects) else [rows]:
            yield _split_finding(judged, segments, many=len(rows.drop_duplicates(segments)) if segments else None)


def _split_finding(rows: DataFrame, segments: list[str], *, many: int | None) -> Finding:
    """Return the finding about the split of an experiment, or of one of its suspect segments."""
    place = (rows["share"] - rows["expected_share"]).abs().fillna(0.0).argmax()
    row = rows.iloc[int(place)].to_dict()
    size, least = row["share"] - row["expected_share"], min(row["p_days"], row["p_worst_day"])
    direction: Direction = "unknown"
    if pd.isna(row["p_value"]):
        case = "one_arm"
    elif row["p_value"] < SUSPECT:
        case, direction = "broken", "higher" if size > 0 else "lower"
    elif rows["is_suspect"].any():
        case = "some_days"
    else:
        case, direction = "fair", "no clear difference"
    is_about_segment = bool(segments) and case in ("broken", "some_days")
    subject = {name: str(row[name]) for name in [EXPERIMENT, *(segments if is_about_segment else [])] if name in row}
    p_values = rows[[*_TESTS]].min()
    return Finding(
        kind="sample ratio",
        case=case,
        subject=subject | ({VARIANT: str(row[VARIANT])} if case == "broken" else {}),
        direction=direction,
        size=float(size),
        unit="share",
        judged=None if case == "one_arm" else "players",
        numbers={
            "experiment": row.get(EXPERIMENT),
            "segment": [str(row[name]) for name in segments] if is_about_segment else [],
            "segments": None if is_about_segment else many,
            "arm": row[VARIANT],
            **{name: row[name] for name in ("share", "expected_share", "worst_day")},
            **{name: None if pd.isna(p_values[name]) else p_values[name] for name in _TESTS},
            "p_least": None if pd.isna(least) else least,
        },
    )


def _sizes(installs: DataFrame, keys: list[str]) -> DataFrame:
    """Return the players by *keys*, day and variant, as one day without timestamps."""
    count = "players" if "players" in installs else column_of(installs, "new_users", "new_users")
    arm_names = [name for name in (EXPERIMENT, VARIANT) if name in installs]
    names = [*dict.fromkeys([*keys, *arm_names])]
    known = installs[installs[arm_names].notna().all(axis=1)].astype(dict.fromkeys(names, "object"))
    known = known if "timestamp" in known else known.assign(timestamp=Series(pd.NaT, index=known.index, dtype=_DAY))
    sizes = known.groupby([*names, "timestamp"], dropna=False, sort=False)[count].sum().reset_index()
    return sizes.rename(columns={count: "players"}).astype({"players": "float64"})


def _with_targets(sizes: DataFrame, expected: Mapping[str, float] | DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Return a row for each value of *keys*, day and variant, with its expected players as target.

    Raises:
        BadQuery: *expected* lacks a variant or a day, or has a weight below 0.
    """
    weights = _weights(expected)
    blocks = []
    for rows in groups(sizes, keys):
        names = [*dict.fromkeys([*rows[VARIANT], *(weights[VARIANT] if weights is not None else [])])]
        grid = pd.MultiIndex.from_product([rows["timestamp"].unique(), names], names=["timestamp", VARIANT])
        block = grid.to_frame(index=False).merge(rows[["timestamp", VARIANT, "players"]], how="left")
        block = block.fillna({"players": 0.0}).assign(weight=1.0)
        if weights is not None:
            on = [name for name in ("timestamp", VARIANT) if name in weights]
            block = block.drop(columns="weight").merge(weights, on=on, how="left")
        if (lacking := block["weight"].isna()).any():
            name = str(block.loc[lacking, VARIANT].iloc[0])
            raise BadQuery("expected", name, "is a variant without an expected weight on a day that has players", names)
        if (block["weight"] < 0).any():
            raise BadQuery("expected", float(block["weight"].min()), "must be 0 or more")
        by_day = block.groupby("timestamp", dropna=False, sort=False)
        block["target"] = block["weight"] / by_day["weight"].transform("sum") * by_day["players"].transform("sum")
        blocks.append(block.assign(**{name: rows[name].iloc[0] for name in keys}))
    return pd.concat(blocks, ignore_index=True) if blocks else sizes.assign(target=Series(dtype="float64"))


def _weights(expected: Mapping[str, float] | DataFrame | None) -> DataFrame | None:
    """Return the expected weights as a frame of ab_variant_id, weight and any timestamp."""
    if expected is None or isinstance(expected, DataFrame):
        return None if expected is None else expected.astype({VARIANT: "object"})
    return DataFrame({VARIANT: [*expected], "weight": [*map(float, expected.values())]})


def _checked(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the arms of one split with its tests."""
    result = rows.groupby([*keys, VARIANT], sort=False, dropna=False)[["players", "target"]].sum().reset_index()
    total = _chi_squares(*(DataFrame([result[name].to_numpy()]) for name in ("players", "target")))
    whole = Series(result["players"].sum(), index=result.index)
    p_days, worst_day, p_worst_day = _over_days(rows[rows["timestamp"].notna()])
    return result.assign(
        share=ratio(result["players"], whole),
        expected_share=ratio(result["target"], whole),
        expected_players=result["target"],
        p_value=total["p"].iloc[0],
        p_days=p_days,
        worst_day=Series(worst_day, index=result.index, dtype=_DAY),
        p_worst_day=p_worst_day,
    )


def _joined_days(players: DataFrame, target: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return both tables, with days joined until the smallest arm expects enough players."""
    least = target.where(target > 0).min(axis=1).fillna(0.0)
    block = (least.cumsum() // FEWEST_EXPECTED).clip(upper=least.sum() // FEWEST_EXPECTED - 1).clip(lower=0)
    first_day = Series(block.index, index=block.index).groupby(block).transform("min")
    return players.groupby(first_day).sum(), target.groupby(first_day).sum()


def _chi_squares(players: DataFrame, target: DataFrame) -> DataFrame:
    """Return chi-square, degrees of freedom and p-value of each row."""
    from scipy import stats

    is_possible = target > 0
    distance = ((players - target) ** 2 / target.where(is_possible)).sum(axis=1)
    is_impossible = ((players > 0) & ~is_possible).any(axis=1)
    degrees = is_possible.sum(axis=1) - 1 + is_impossible
    distance = distance.mask(is_impossible, np.inf)
    p = stats.chi2.sf(distance.to_numpy("float64"), degrees.where(degrees > 0).to_numpy("float64"))
    return DataFrame({"distance": distance, "degrees": degrees, "p": p})


def _over_days(rows: DataFrame) -> tuple[float, Any, float]:
    """Return the p-value of all days together, the worst day and its corrected p-value."""
    from scipy import stats

    tables = [rows.pivot(index="timestamp", columns=VARIANT, values=name) for name in ("players", "target")]
    by_day = _chi_squares(*_joined_days(*tables)) if len(rows) else DataFrame({"degrees": []})
    tested = by_day[by_day["degrees"] > 0]
    if tested.empty:
        return float("nan"), pd.NaT, float("nan")
    p_days = float(stats.chi2.sf(tested["distance"].sum(), tested["degrees"].sum()))
    return p_days, tested["p"].idxmin(), min(1.0, float(tested["p"].min()) * len(tested))
