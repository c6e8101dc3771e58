"""Verdicts on experiments as claims: split, differences, reach, and what to do next.

Every claim is data besides its sentence (`analysis.claims`). Directions are those that the figures carry: a difference
is called higher or lower only if it stays so after the correction for all comparisons of its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens._text import counted, format_number
from gamelens.analysis.claims import Claim, Direction, direction_of
from gamelens.analysis.experiments.arm_outcomes import EXPERIMENT, MEASURE, VARIANT, groups
from gamelens.analysis.experiments.power_analysis import QUARTER_DAYS
from gamelens.analysis.experiments.sample_ratios import SUSPECT
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

_COMPARED: Final = result_of(
    "experiments.compare(frame, arm=...)", "control", "unit", "difference", "low", "high", "p_adjusted"
)
_REACH: Final = result_of("experiments.detectable_effects(frame, arm=...)", "minimal_lift", "days_needed")
_PER_PLAYER: Final = result_of("experiments.per_new_player(installs, frame)", "players")
_SURE: Final = 0.975
_ROUND: Final = 0.1  # changes from here on are written without decimals
_MOST_DAYS: Final = 365
_SCALE: Final = {"share": 100.0, "money": 1.0, "number": 1.0}
_UNITS: Final = {"share": "pp", "money": "USD", "number": ""}
_COLUMNS: Final = ("control", "unit", "design")


@requires(checked=result_of("experiments.sample_ratio(installs)", VARIANT, "players", "p_value", "is_suspect"))
def split_claims(checked: DataFrame) -> list[Claim]:
    """Return a claim on the split of each experiment, from the frame of `sample_ratio`.

    kind "sample ratio"; size is the largest deviation of an arm from its expected share, in pp. The direction is
    "unknown" with a single arm, and "no clear difference" if chance explains the split.
    """
    return [_split_claim(rows) for rows in groups(checked, [EXPERIMENT])]


@requires(compared=_COMPARED)
def difference_claims(compared: DataFrame) -> list[Claim]:
    """Return a claim on each row of `experiments.compare`.

    kind is the measure; subject names the arm, and experiment and split if there; size, low and high are the difference
    from the control in pp, USD or the measure's own unit.
    """
    return [_difference_claim(row, _keys(compared)) for row in compared.to_dict("records")]


@requires(compared=_COMPARED, reach=_REACH)
def advice_claims(
    compared: DataFrame, reach: DataFrame, *, lift: float = 0.05, measures: Sequence[str] | None = None
) -> list[Claim]:
    """Return what to do about each comparison: decide, wait, or stop.

    *compared* is the frame of `experiments.compare` and *reach* that of `detectable_effects` for the same frames and
    *lift*. *measures* are those that the experiment was made for; None is all of them. kind is "advice on" the measure;
    size, low and high are the difference with its always-valid interval, since advice is read each morning, and the
    direction is what that interval carries.
    """
    keys = [name for name in _keys(compared) if name in reach]
    rows = compared.merge(reach.drop(columns=["players", "control_players", "control_value"]), on=keys, how="left")
    wanted = rows if measures is None else rows[rows[MEASURE].isin(measures)]
    return [_advice_claim(row, _keys(compared), lift) for row in wanted.to_dict("records")]


@requires(sizes=result_of("experiments.arms(installs)", EXPERIMENT, "players"))
def arms_claim(sizes: DataFrame) -> Claim:
    """Return how many experiments and new players there are.

    *sizes* is the frame of `arms`. Players are counted, not estimated, so the claim has no interval.
    """
    kind, total = "experiments", int(sizes["players"].sum())
    if not total:
        text = "No experiment has new players in this period: look at another one with `over`."
        return Claim(kind=kind, direction="unknown", unit="players", text=text)
    names = [*dict.fromkeys(sizes[EXPERIMENT].astype(str))]
    text = f"{counted(len(names), 'experiment')} with new players in this period, {total:,} in all: {', '.join(names)}."
    return Claim(kind=kind, direction="unknown", size=float(total), unit="players", text=text)


@requires(conversions=_PER_PLAYER, money=_PER_PLAYER)
def payers_claim(conversions: DataFrame, money: DataFrame) -> Claim:
    """Return how many players paid, and how much, of two frames of `per_new_player`.

    kind "payers"; size is their share. It is counted for these players and has no interval: arms are compared by
    `compare`.
    """
    players, payers = int(conversions["players"].sum()), int(conversions["successes"].sum())
    if not players:
        text = "No player of an experiment has installed in this period."
        return Claim(kind="payers", direction="unknown", unit="share", text=text)
    spent = format_number(money["money"].sum(), "money")
    text = f"{payers:,} of {players:,} players have paid, {spent} in all{': revenue rests on them' if payers else ''}."
    return Claim(kind="payers", direction="unknown", size=payers / players, unit="share", text=text)


@requires(chances=result_of("experiments.probability_best(frame)", MEASURE, "chance_best", "expected_loss"))
def best_claims(chances: DataFrame, arm: str = VARIANT) -> list[Claim]:
    """Return the likeliest best arm of each measure, of the frame of `probability_best`.

    kind "best" and the measure; size is its chance. The direction is "higher" from a chance of 97.5 % on, which for two
    arms is a two-sided test at 5 %.
    """
    keys = [*chances.columns][: [*chances.columns].index(arm) + 1]
    known = chances[chances["chance_best"].notna()].sort_values("chance_best", ascending=False, kind="stable")
    best = known.drop_duplicates(keys[:-1]).sort_index() if len(keys) > 1 else known.head(1)
    return [_best_claim(row, keys, arm) for row in best.to_dict("records")]


@requires(reach=_REACH)
def reach_claims(reach: DataFrame, *, lift: float = 0.05) -> list[Claim]:
    """Return what the players of each comparison can show.

    *reach* is the frame of `detectable_effects`. kind "reach of" the measure; size is the smallest change that is found
    with the frame's power, relative to the control's value. It is planned, not estimated, so the claim has no interval.
    *lift* is that of the frame.
    """
    keys = [*reach.columns][: [*reach.columns].index("players")]
    return [_reach_claim(row, keys, lift) for row in reach.to_dict("records")]


def _best_claim(row: dict[Any, Any], keys: Sequence[str], arm: str) -> Claim:
    others = [str(row[key]) for key in keys if key not in (MEASURE, arm) and pd.notna(row[key])]
    of = f" of {', '.join(others)}" if others else ""
    chance, loss = float(row["chance_best"]), 100 * float(row["expected_loss"])
    text = (
        f"{row[MEASURE]}{of}: {row[arm]} is the best with a chance of {format_number(chance, 'share')}; choosing it "
        f"gives up {loss:.2g} percentage points on average."
    )
    return Claim(
        kind=f"best {row[MEASURE]}",
        subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
        direction="higher" if chance >= _SURE else "no clear difference",
        size=chance,
        unit="share",
        text=text,
    )


def _reach_claim(row: dict[Any, Any], keys: Sequence[str], lift: float) -> Claim:
    name, needed = _name(row, keys), row["days_needed"]
    if pd.isna(row["minimal_lift"]):
        text = f"{name}: these players are too few to show any change."
    else:
        text = f"{name}: these players show changes of {_change_text(row['minimal_lift'])} or more of the "
        text += f"control's value{_quarter(row)}."
    if pd.notna(needed):
        takes = f"{int(needed):,} install days" if needed <= _MOST_DAYS else f"more than {_MOST_DAYS:,} install days"
        text += f" A change of {format_number(lift, 'share', places=0)} takes {takes}."
    return Claim(
        kind=f"reach of {row[MEASURE]}",
        subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
        direction="unknown",
        size=float(row["minimal_lift"]),
        unit="ratio",
        text=text,
    )


def _quarter(row: dict[Any, Any]) -> str:
    if pd.isna(row["quarter_lift"]):
        return ""
    return f"; a quarter would show {_change_text(row['quarter_lift'])}"


def _change_text(lift: float) -> str:
    return format_number(lift, "share", places=0 if lift >= _ROUND else 1)


def _split_claim(rows: DataFrame) -> Claim:
    row = rows.iloc[int((rows["share"] - rows["expected_share"]).abs().fillna(0.0).argmax())]
    name = f"The split of {row[EXPERIMENT]}" if EXPERIMENT in rows else "The split"
    size = float(100 * (row["share"] - row["expected_share"]))
    direction: Direction = "higher" if size > 0 else "lower"
    if pd.isna(row["p_value"]):
        direction, text = "unknown", f"{name} cannot be judged: there are not two arms."
    elif row["p_value"] < SUSPECT:
        text = (
            f"{name} is broken: {row[VARIANT]} has {row['share']:.1%} of the players instead of "
            f"{row['expected_share']:.1%} (p = {row['p_value']:.2g}). Find out where players were lost first."
        )
    elif rows["is_suspect"].any():
        direction = "unknown"
        least = min(row["p_days"], row["p_worst_day"])
        text = (
            f"{name} is right in total but not day by day (p = {least:.2g}), least of all on "
            f"{row['worst_day']:%Y-%m-%d}: if no ramp was planned, players were lost on some days."
        )
    else:
        direction = "no clear difference"
        days = "" if pd.isna(row["p_days"]) else f", and day by day {row['p_days']:.2g}"
        text = f"{name} gives no reason for doubt (p = {row['p_value']:.2g} in total{days})."
    subject = {EXPERIMENT: str(row[EXPERIMENT])} if EXPERIMENT in rows else {}
    subject |= {} if direction in ("unknown", "no clear difference") else {VARIANT: str(row[VARIANT])}
    return Claim(kind="sample ratio", subject=subject, direction=direction, size=size, unit="pp", text=text)


def _difference_claim(row: dict[Any, Any], keys: Sequence[str]) -> Claim:
    is_clear = row["p_adjusted"] < LEVEL
    direction = direction_of(row["low"], row["high"])
    shown: Direction = direction if is_clear or direction == "unknown" else "no clear difference"
    value, base = (_value(row[name], row["unit"]) for name in ("value", "control_value"))
    between = "" if row["design"] != "between days" else (
        " They have different install days: whatever else changed meanwhile is in the difference."
    )  # fmt: skip
    if direction == "unknown":
        end = "there are too few players or install days for an interval"
    elif is_clear:
        end = f"{_signed(row['difference'], row['unit'])}, 95% interval {_interval(row, 'low', 'high')}"
    else:
        several = "" if direction == "no clear difference" else " among so many comparisons"
        end = f"no clear difference{several}, 95% interval {_interval(row, 'low', 'high')}"
    text = f"{_name(row, keys)}: {value}, {row['control']} {base}; {end}.{between}"
    return _claim(str(row[MEASURE]), row, keys, shown, ("low", "high"), text)


def _advice_claim(row: dict[Any, Any], keys: Sequence[str], lift: float) -> Claim:
    direction = direction_of(row["always_low"], row["always_high"])
    name, control = _name(row, keys), row["control"]
    if direction in ("higher", "lower"):
        advice = f"{direction} than {control}, at whatever day it is looked at: decide now"
    elif row["p_adjusted"] < LEVEL:
        side = direction_of(row["low"], row["high"])
        advice = (
            f"{side} than {control} if today is the planned end of the test. Looked at daily, the difference may still "
            f"be {_interval(row, 'always_low', 'always_high')}: otherwise go on to the planned end"
        )
    else:
        advice = _next_step(row, lift)
    return _claim(
        f"advice on {row[MEASURE]}", row, keys, direction, ("always_low", "always_high"), f"{name}: {advice}."
    )


def _next_step(row: dict[Any, Any], lift: float) -> str:
    """Return the advice on a comparison without a clear difference."""
    room = (
        f"no clear difference, 95% interval {_interval(row, 'low', 'high')}" if pd.notna(row["low"]) else "no interval"
    )
    change, needed = format_number(lift, "share", places=0), row.get("days_needed")
    if needed is None or pd.isna(needed):
        return f"{room}. The frame does not tell how long a change of {change} takes"
    days, left = int(needed), int(needed - row["days"])
    if left <= 0:
        return f"{room}. The arms are large enough to show a change of {change}: more players will hardly decide it"
    if days > QUARTER_DAYS:
        return (
            f"{room}. A change of {change} takes {days:,} install days at this pace, longer than a quarter: stop, "
            f"or test something that may change it by {format_number(row['quarter_lift'], 'share', places=0)} or more"
        )
    if not row["is_running"]:
        return f"{room}. It ended on {row['last_day']:%Y-%m-%d}; a change of {change} takes {days} install days"
    return f"{room}. A change of {change} takes {days} install days at this pace: go on for {left} more, then decide"


def _claim(
    kind: str, row: dict[Any, Any], keys: Sequence[str], direction: Direction, ends: tuple[str, str], text: str
) -> Claim:
    """Return the claim of a row, with its numbers in the unit of claims."""
    scale = _SCALE[row["unit"]]
    return Claim(
        kind=kind,
        subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
        direction=direction,
        size=scale * row["difference"],
        low=scale * row[ends[0]],
        high=scale * row[ends[1]],
        unit=_UNITS[row["unit"]],
        text=text,
    )


def _keys(compared: DataFrame) -> list[str]:
    """Return the columns that name a row of `compare`: all before the control."""
    return [*compared.columns][: [*compared.columns].index("control")]


def _name(row: dict[Any, Any], keys: Sequence[str]) -> str:
    names = [str(row[key]) for key in reversed(keys) if key != MEASURE and pd.notna(row[key])]
    return f"{row[MEASURE]} of {names[0]}" + (f" ({', '.join(names[1:])})" if names[1:] else "")


def _value(value: float, unit: str) -> str:
    return format_number(value, unit if unit in ("share", "money") else "number")  # type: ignore[arg-type]


def _signed(value: float, unit: str) -> str:
    number = f"{_SCALE[unit] * value:+.3g}"
    return {"share": f"{number} pp", "money": f"{number} USD", "number": number}[unit]


def _interval(row: dict[Any, Any], low: str, high: str) -> str:
    unit = _UNITS[row["unit"]]
    return f"{_SCALE[row['unit']] * row[low]:+.3g} to {_SCALE[row['unit']] * row[high]:+.3g} {unit}".rstrip()
