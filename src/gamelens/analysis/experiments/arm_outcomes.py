"""Outcomes of the arms of a split, by install day: what every test of an experiment reads.

An arm is a value of the split: a variant, a build, or the days before and after a date. An *outcome frame* has one row
for each arm, measure and day: the keys (ab_id if there, the columns of *by*), measure, the arm (object), timestamp
(datetime64[us, UTC]; NaT if the frame has no days), unit, is_counted (bool), players and amount (float64). A measure
is counted if each player is at most one success of it; other amounts are sums, such as money.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.retention.retention_rates import is_retention_frame
from gamelens.analysis.tidy_frames import column_of, dimension_columns, queried_metrics, ratio
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns
from gamelens.catalog import Quotient, find_metric
from gamelens.errors import BadQuery

Unit = Literal["share", "money", "number"]

EXPERIMENT: Final = "ab_id"
VARIANT: Final = "ab_variant_id"
MEASURE: Final = "measure"
CONTROL: Final = "ctrl"
"""Variant of a control group (Wire 1.13, Configs and experiments)."""
OTHERS: Final = "the others"
"""As a control: each arm is compared with all other arms together, so that none is singled out by its own result."""
PERIOD: Final = "period"
"""Column of the arms `before` and `after`."""

_PER_PLAYER: Final = result_of("experiments.per_new_player(installs, frame)", "players")
_CONVERSION: Final = "converting_users"
_NUMBERS: Final = ("players", "amount")


@requires(
    since=("outcome", "installs"),
    installs=FrameRequirements(metrics=("new_users",), every=("day",)),
    outcome=FrameRequirements(splits=("installed_on",)),
)
@returns(
    named("timestamp", about="the install day"),
    KEYS,
    "measure players",
    named("successes", about="with converting_users"),
    named("money", about="with any other metric"),
)
def per_new_player(installs: DataFrame, outcome: DataFrame, *, metric: str = "revenue") -> DataFrame:
    """Return the players of each install day, and what they have brought until now.

        over, split = "last 28 complete days", ["ab_id", "ab_variant_id"]
        spent = lens.query("revenue", by=["installed_on", *split], every="all", over=over)
        experiments.per_new_player(lens.query("new_users", by=split, over=over), spent)

    *installs* is new_users at day granularity; *outcome* is *metric* over all the time since, by installed_on and the
    same dimensions. With *metric* "converting_users" the result has the players who have paid, with another metric of
    money its sum. A day without any has 0. Later install days have had less time, in every arm alike.

    Raises:
        BadQuery: *outcome* is not by installed_on, or lacks a dimension of *installs*.
    """
    is_conversion = metric == _CONVERSION
    field, name = (_CONVERSION, "successes") if is_conversion else ("sum", "money")
    count, total = column_of(installs, "new_users", "new_users"), column_of(outcome, metric, field)
    dimensions = dimension_columns(installs)
    for column in ("installed_on", *dimensions):
        if column not in outcome:
            raise BadQuery("outcome", list(outcome.columns), f"has no {column}: query {metric} by it as well")
    keys = ["timestamp", *dimensions]
    players = sum_over(installs, keys, [count]).rename(columns={count: "players"})
    brought = outcome[outcome["installed_on"].notna()]
    days = pd.to_datetime(brought["installed_on"].astype("object"), utc=True).astype("datetime64[us, UTC]")
    brought = sum_over(brought.assign(timestamp=days), keys, [total]).rename(columns={total: name})
    texts = dict.fromkeys(dimensions, "object")
    result = players.astype(texts).merge(brought.astype(texts), on=keys, how="left").fillna({name: 0})
    result[MEASURE] = "conversion" if is_conversion else f"{metric} per player"
    return result


@requires(conversions=_PER_PLAYER, money=_PER_PLAYER)
@returns("players payers payer_share money")
def payers(conversions: DataFrame, money: DataFrame) -> DataFrame:
    """Return in one row how many players have paid, and how much, of two frames of `per_new_player`.

        installs = lens.query("new_users", by="platform", over="last 28 complete days")
        so_far = {"by": ["installed_on", "platform"], "every": "all", "over": "last 28 complete days"}
        paid = experiments.per_new_player(installs, lens.query("converting_users", **so_far), metric="converting_users")
        experiments.payers(paid, experiments.per_new_player(installs, lens.query("revenue", **so_far)))

    It is counted for these players: arms are compared by `experiments.compare`.

    Claims: "payers".
    """
    counts = {"players": conversions["players"].sum(), "payers": conversions["successes"].sum()}
    result = DataFrame([counts]).astype("Int64")
    result["payer_share"] = ratio(result["payers"], result["players"])
    return result.assign(money=float(money["money"].sum()))


@reads("experiments.payers")
def _read_payers(result: DataFrame) -> Iterator[Finding]:
    """Say how many players the revenue rests on."""
    row = result.iloc[0]
    share = float(row["payers"] / row["players"]) if row["players"] else float("nan")
    yield Finding(
        kind="payers",
        case="paid" if row["payers"] else "nobody" if not row["players"] else "none",
        size=share,
        unit="share",
        judged="counted" if row["players"] else None,
        numbers={name: row[name] for name in ("players", "payers", "money")},
    )


def outcomes_of(
    frames: Sequence[DataFrame], *, arm: str = VARIANT, by: str | Sequence[str] | None = None, since: Any = None
) -> tuple[DataFrame, str]:
    """Return the outcome frame of *frames*, and the name of its arm column.

    A frame is one of `Client.retention`, of `per_new_player`, of a query for a metric that is a ratio of counts or sums
    (conversion, arpdau, ads per session), or has the columns measure, players and successes or money. With *since* the
    arms are the days before and after that day. Rows without an arm are left out, other splits are added up.

    Raises:
        BadQuery: there is no frame; a column is missing; the frame holds nothing that can be compared; a value is
            unknown, negative, or more than the players.
    """
    if not frames:
        raise BadQuery("frames", [], "is empty: pass at least one frame to compare")
    columns = [by] if isinstance(by, str) else list(by or ())
    name = PERIOD if since is not None else arm
    parts = [_outcomes(frame if since is None else _with_period(frame, since), name, columns) for frame in frames]
    keys = list(dict.fromkeys(column for part in parts for column in part.columns if column not in _NUMBERS))
    return pd.concat([part.reindex(columns=[*keys, *_NUMBERS]) for part in parts], ignore_index=True), name


def groups(frame: DataFrame, keys: Sequence[str]) -> Iterator[DataFrame]:
    """Yield the rows of each value of *keys*, in the frame's order.

    Keys that are not columns are ignored; without any, all rows are one group.
    """
    present = [name for name in keys if name in frame]
    if not len(frame):
        return
    if not present:
        yield frame
        return
    for _, rows in frame.groupby(present, observed=True, sort=False, dropna=False):
        yield rows


def key_columns(outcomes: DataFrame, arm: str) -> list[str]:
    """Return the columns that separate the comparisons of an outcome frame."""
    others = {arm, "timestamp", "unit", "is_counted", *_NUMBERS}
    return [name for name in outcomes.columns if name not in others]


def control_of(rows: DataFrame, arm: str, control: str | None) -> str:
    """Return the arm to compare with: *control*, else `ctrl`, else the oldest.

    Of variants the first by name is taken instead of the oldest; of arms as old as each other, the largest.
    """
    names = sorted(set(rows[arm]))
    if control is not None or CONTROL in names:
        return CONTROL if control is None else control
    if arm == VARIANT:
        return str(names[0])
    first = rows.groupby(arm, sort=False).agg(day=("timestamp", "min"), players=("players", "sum")).reset_index()
    return str(first.sort_values(["day", "players"], ascending=[True, False])[arm].iloc[0])


def _outcomes(frame: DataFrame, arm: str, by: Sequence[str]) -> DataFrame:
    """Return the outcome frame of one frame."""
    for field, name in [("arm", arm), *(("by", column) for column in by)]:
        if name not in frame:
            raise BadQuery(field, name, "is not a column of the frame: query by it as well", map(str, frame.columns))
    measures = pd.concat(list(_measures(frame[frame[arm].notna()])))
    experiment = [EXPERIMENT] if EXPERIMENT in frame and arm == VARIANT else []
    keys = [*dict.fromkeys([*experiment, *by]), MEASURE, arm, "timestamp", "unit", "is_counted"]
    measures = measures.astype(dict.fromkeys((*experiment, *by, MEASURE), "object"))
    measures[arm] = measures[arm].astype("object").map(str)
    if "timestamp" not in measures:
        measures["timestamp"] = Series(pd.NaT, index=measures.index, dtype="datetime64[us, UTC]")
    _check_amounts(measures, arm)
    sums = measures.groupby(keys, observed=True, dropna=False, sort=False)[list(_NUMBERS)].sum().reset_index()
    return sums.astype(dict.fromkeys(_NUMBERS, "float64"))


def _measures(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield the rows of each measure of *frame* with unit, is_counted, players and amount."""
    if is_retention_frame(frame):
        rows = frame[frame["retention"].notna() & (frame["installs"] > 0)].sort_values("age", kind="stable")
        names = Series([f"D{age} retention" for age in rows["age"]], index=rows.index, dtype="object")
        yield _measure(rows, names, "share", rows["installs"], rows["returned"])
    elif "players" in frame and {"successes", "money"} & set(frame):
        is_counted = "successes" in frame
        name = "successes" if is_counted else "money"
        yield _measure(
            frame, frame.get(MEASURE, name), "share" if is_counted else "money", frame["players"], frame[name]
        )
    else:
        yield from _ratios(frame)


def _ratios(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield the rows of each ratio that the catalog knows of the queried metrics.

    Raises:
        BadQuery: the metrics have no ratio.
    """
    names = queried_metrics(frame)
    found = [(metric, field) for metric in map(find_metric, names) if metric for field in metric.fields]
    found = [(metric, field) for metric, field in found if metric.columns[field.name] in frame]
    ratios = [(metric.name, field, field.combines) for metric, field in found if isinstance(field.combines, Quotient)]
    if not ratios:
        rule = "contain nothing that can be compared: pass a frame of lens.retention, of per_new_player, or a ratio"
        raise BadQuery("frame", names or list(frame.columns), rule)
    for name, field, quotient in ratios:
        parts = {part: frame[column_of(frame, name, part)].astype("Float64") for part in quotient.names}
        unit: Unit = "share" if field.unit == "share" else "money" if field.unit.startswith("USD") else "number"
        label = f"mean {name}" if field.name == "mean" else field.name
        yield _measure(frame, label, unit, parts[quotient.whole], quotient.numerator(parts), is_counted=False)


def _measure(
    rows: DataFrame,
    measure: Any,
    unit: Unit,
    players: Series[Any],
    amount: Series[Any],
    *,
    is_counted: bool | None = None,
) -> DataFrame:
    """Return *rows* with the numbers of one measure in place of their own."""
    return rows.drop(columns=[MEASURE, *_NUMBERS], errors="ignore").assign(
        measure=measure,
        unit=unit,
        is_counted=unit == "share" if is_counted is None else is_counted,
        players=players,
        amount=amount,
    )


def _check_amounts(measures: DataFrame, arm: str) -> None:
    """Check that every number is known and possible.

    Raises:
        BadQuery: a number is unknown or negative, or more are counted than there are players.
    """
    players, amount = (measures[name].astype("Float64") for name in _NUMBERS)
    is_counted = measures["is_counted"].astype("boolean")
    wrong = {
        "is not known: an arm without a known result can neither win nor lose, so leave its rows out or query again": (
            players.isna() | amount.isna()
        ),
        "must be 0 or more": (players < 0) | ((amount < 0) & is_counted),
        "is more than the players": (amount > players) & is_counted,
    }
    for rule, is_wrong in wrong.items():
        if is_wrong.fillna(False).any():
            row = measures[is_wrong.fillna(False)].iloc[0]
            day = "" if pd.isna(row["timestamp"]) else f" on {row['timestamp']:%Y-%m-%d}"
            raise BadQuery(f"{row[MEASURE]} of {row[arm]}{day}", (row["amount"], row["players"]), rule)


def _with_period(frame: DataFrame, since: Any) -> DataFrame:
    """Return the frame with the column period: before and after the start of the day *since*.

    Raises:
        BadQuery: the frame has no days, or *since* is not a date.
    """
    if "timestamp" not in frame:
        raise BadQuery("since", since, "needs a frame by day: it has no column timestamp")
    try:
        start = pd.Timestamp(since)
    except ValueError:
        raise BadQuery("since", since, "is not a date such as 2026-11-03") from None
    start = start.tz_localize("UTC") if start.tzinfo is None else start.tz_convert("UTC")
    names = (frame["timestamp"] >= start).map({False: "before", True: "after"})
    return frame.assign(**{PERIOD: pd.Categorical(names, categories=["before", "after"])})
