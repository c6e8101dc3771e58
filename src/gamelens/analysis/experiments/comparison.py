"""Comparison of the arms of any split: variants, builds, platforms, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import (
    Clause,
    Direction,
    Finding,
    JudgedBy,
    case_among,
    direction_among,
    reads,
)
from gamelens.analysis.experiments.arm_outcomes import MEASURE, VARIANT, groups, key_columns, outcomes_of
from gamelens.analysis.experiments.arm_pairs import ArmPair, arm_pairs, informative_players
from gamelens.analysis.significance import LEVEL, always_valid_half_width, holm
from gamelens.analysis.tidy_frames.columns import OF_MEASURE, Column
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

TYPICAL_LIFT: Final = 0.2
"""Relative size of an effect at which always-valid intervals are narrow.

They hold for effects of any size. It must not depend on the result, so it is a constant.
"""

_DRAWS: Final = 100_000
_NUMBERS: Final = (
    *("days", "control_days", "players", "control_players"),
    *("value", "control_value", "difference", "low", "high", "always_low", "always_high", "relative", "p_value"),
)
COMPARED: Final = (
    KEYS,
    named("control", about="the arm that is compared with"),
    Column("unit", "unit", about="share, money or number"),
    Column("design", "category", about="within days, between days or in total"),
    *map(named, ("days", "control_days", "players", "control_players", "value", "control_value")),
    between(
        between("difference", "right for one look at a planned end", low="low", high="high"),
        "holds at every look",
        low="always_low",
        high="always_high",
    ),
    named("relative", na="where the control's value is 0"),
    named("p_value"),
    named("p_adjusted", about="Holm, for all rows"),
)
"""The columns of a comparison. Its keys are ab_id and *by*, if there, measure and the arm."""


@requires(frames=ANY)
@returns(*COMPARED)
def compare(
    *frames: DataFrame,
    arm: str = VARIANT,
    control: str | None = None,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    within_days: bool | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the difference between each arm of *frames* and the control, measure by measure.

        split, is_member = ["ab_id", "ab_variant_id"], ~gl.dim.ab_id.is_null()
        came_back = lens.retention([1, 7], by=split, where=is_member, over="last 28 complete days")
        experiments.compare(came_back)

    Variants of an experiment: `compare(came_back, conversions)`. Builds: `compare(came_back, arm="first_build",
    control="1.9.0")`. Before and after a day: `compare(came_back, since="2026-11-03")`.

    Arms are compared within install day (`ArmPair.estimate`), which a changing split does not bias. Arms that share too
    few days are compared between days: then all that changed meanwhile is in the difference, `design` says so, and both
    arms need 7 install days. low and high are right for one look at a planned end; in rows with p_adjusted below 0.05
    they are corrected for having been selected (Benjamini and Yekutieli 2005). always_low and always_high hold all true
    differences of the frame on every day of the test at once (a mixture of sequential tests, corrected for the number
    of rows by Bonferroni), so they may be read each morning.

    Args:
        frames: of `Client.retention`, of `per_new_player`, of a query for a ratio, or with the columns measure,
            the arm, players and successes or money; with or without timestamp.
        arm: the column whose values are compared.
        control: the arm to compare with; None is `ctrl`, else the first variant by name, else the arm seen first.
            `OTHERS` compares each arm with all others together: choosing the best of many would find differences that
            are none.
        by: columns to compare within, such as country_code. Other columns are added up; experiments never are.
        since: first day of the arm `after`; all earlier days are `before`. Replaces *arm*.
        within_days: whether to compare within install days; None does where half of an arm's players allow it.
        confidence: level of the intervals.

    Values are those within days, of equally large days. Claims: "difference", one a row.

    Raises:
        BadQuery: *control* has no players; a frame or an argument is not as described; a number is unknown.
    """
    outcomes, name = outcomes_of(frames, arm=arm, by=by, since=since)
    pairs = arm_pairs(outcomes, arm=name, control=control, within_days=within_days)
    texts = [*key_columns(outcomes, name), name, "control", "unit", "design"]
    rows = [_row(pair, confidence, looks=len(pairs)) for pair in pairs]
    adjusted = holm(Series([row["p_value"] for row in rows], dtype="float64"))
    selected = np.flatnonzero(adjusted < LEVEL)
    level = 1 - (1 - confidence) * len(selected) / max(1, adjusted.notna().sum())
    for place in selected:
        rows[place] |= dict(zip(("low", "high"), pairs[place].estimate(level)[2:4], strict=True))
    result = DataFrame(rows, columns=[*texts, *_NUMBERS])
    result = result.astype({text: pd.CategoricalDtype([*result[text].dropna().unique()]) for text in texts})
    return result.assign(p_adjusted=adjusted)


@reads("experiments.compare", row_by_row=True)
def _read_differences(compared: DataFrame) -> Iterator[Finding]:
    """Say of each row how the arm differs."""
    keys = [*compared.columns][: [*compared.columns].index("control")]
    for row in compared.to_dict("records"):
        yield difference_finding(row, keys)


def difference_finding(row: Mapping[Any, Any], keys: Sequence[str]) -> Finding:
    """Return how the arm of a row differs from its control; it is clear if it stays so after the correction."""
    direction = direction_among(row["low"], row["high"], row["p_adjusted"])
    case = case_among(direction, row["low"], row["high"])
    if direction == "unknown":
        is_zero = row["value"] == row["control_value"] == 0
        case = "nobody" if pd.isna(row["difference"]) else "zero" if is_zero else case
    return comparison_finding(row, keys, kind="difference", case=case, direction=direction)


def comparison_finding(
    row: Mapping[Any, Any],
    keys: Sequence[str],
    *,
    kind: str,
    case: str,
    direction: Direction,
    bounds: tuple[str, str] = ("low", "high"),
    numbers: Mapping[str, Any] | None = None,
) -> Finding:
    """Return the finding about one row of `compare`, whose arm is named by *keys*."""
    names = [str(row[key]) for key in reversed(keys) if key != MEASURE and pd.notna(row[key])]
    judged: JudgedBy = "players" if row["design"] != "between days" else "days"
    words = {
        "measure": str(row[MEASURE]),
        "name": names[0] + (f" ({', '.join(names[1:])})" if names[1:] else ""),
        "control": str(row["control"]),
        "arms": keys[-1],
        "between": [Clause("between")] if row["design"] == "between days" else [],
        **{name: row[name] for name in ("value", "control_value")},
    }
    return Finding(
        kind=kind,
        case=case,
        subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
        direction=direction,
        size=row["difference"],
        low=row[bounds[0]],
        high=row[bounds[1]],
        unit={"share": "share", "money": "USD"}.get(row["unit"], "number"),
        judged=None if pd.isna(row["low"]) else judged,
        numbers={**words, **(numbers or {})},
    )


@requires(frames=ANY)
@returns(
    KEYS,
    "players",
    between(named("value", kind="share", scale=OF_MEASURE), "the middle 95% of the posterior", low="low", high="high"),
    "chance_best",
    named("expected_loss", about="by choosing this arm although another is better"),
    named(
        "sure_from",
        about="the chance from which on an arm is called the best: 97.5%, which for two arms is a two-sided "
        "test at 5%, corrected for all measures",
    ),
)
def probability_best(
    *frames: DataFrame,
    arm: str = VARIANT,
    by: str | Sequence[str] | None = None,
    seed: int = 0,
    draws: int = _DRAWS,
    prior: tuple[float, float] = (1.0, 1.0),
) -> DataFrame:
    """Return the probability that each arm is the best, measure by measure.

        split, is_member = ["ab_id", "ab_variant_id"], ~gl.dim.ab_id.is_null()
        came_back = lens.retention([7], by=split, where=is_member, over="last 28 complete days")
        experiments.probability_best(came_back)

    *frames* are frames as `compare` takes them, whose measures are shares of players. Shares are means over equally
    large install days, on the days that all arms have. Every share has a Beta *prior* (flat by default). *draws*
    samples of the posterior are drawn with *seed*: the same frame gives the same result, exact to about 0.5 /
    sqrt(draws).

    Keys are ab_id and *by*, if there, measure and the arm. Claims: "best", the likeliest arm of each measure.

    Raises:
        BadQuery: a number is unknown; a measure is not a share of players; no install day has players of all arms.
    """
    outcomes, _ = outcomes_of(frames, arm=arm, by=by)
    if not outcomes["is_counted"].all():
        other = outcomes.loc[~outcomes["is_counted"].astype("bool"), MEASURE].iloc[0]
        raise BadQuery("measure", other, "is not a share of players: use compare()")
    keys, rng = [*key_columns(outcomes, arm), arm], np.random.default_rng(seed)
    blocks = []
    for rows in groups(outcomes, keys[:-1]):
        chances = _chances(_standardised(rows, arm), rng, draws, prior)
        names = rows.drop_duplicates(arm)[keys].reset_index(drop=True)
        blocks.append(pd.concat([names, chances], axis=1))
    numbers = ("value", "low", "high", "chance_best", "expected_loss", "sure_from")
    empty = DataFrame(columns=[*keys, "players", *numbers])
    return pd.concat(blocks, ignore_index=True).assign(sure_from=1 - LEVEL / 2 / len(blocks)) if blocks else empty


@reads("experiments.probability_best", row_by_row=True)
def _read_best(chances: DataFrame, arm: str) -> Iterator[Finding]:
    """Say which arm of each measure is the likeliest best, and whether that is sure."""
    keys = [*chances.columns][: [*chances.columns].index(arm) + 1]
    known = chances[chances["chance_best"].notna()].sort_values("chance_best", ascending=False, kind="stable")
    best = known.drop_duplicates(keys[:-1]).sort_index()
    for row in best.to_dict("records"):
        others = [str(row[key]) for key in keys if key not in (MEASURE, arm) and pd.notna(row[key])]
        is_sure = row["chance_best"] >= row["sure_from"]
        numbers = {"measure": row[MEASURE], "name": str(row[arm]), "of": others}
        yield Finding(
            kind="best",
            case="sure" if is_sure else "likeliest",
            subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
            direction="higher" if is_sure else "no clear difference",
            size=row["chance_best"],
            unit="share",
            judged="players",
            numbers=numbers | {name: row[name] for name in ("expected_loss", "sure_from")},
        )


def _row(pair: ArmPair, confidence: float, *, looks: int) -> dict[str, Any]:
    """Return the row of `compare` for one pair of so many as *looks*."""
    found = pair.estimate(confidence)
    difference, scale = found.value - found.control_value, TYPICAL_LIFT * (found.value + found.control_value) / 2
    level = 1 - (1 - confidence) / looks
    error = found.error if looks == 1 else pair.estimate(level).error  # so that it holds the interval of one look
    half = always_valid_half_width(error, scale, confidence=level)
    bound = 1.0 if pair.unit == "share" else np.inf
    is_timed = pair.design != "in total"
    return pair.keys | {
        "control": pair.control,
        "unit": pair.unit,
        "design": pair.design,
        "days": len(pair.treated.players) if is_timed else pd.NA,
        "control_days": len(pair.base.players) if is_timed else pd.NA,
        "players": int(pair.treated.players.sum()),
        "control_players": int(pair.base.players.sum()),
        "value": found.value,
        "control_value": found.control_value,
        "difference": difference,
        "low": found.low,
        "high": found.high,
        "always_low": np.maximum(difference - half, -bound),
        "always_high": np.minimum(difference + half, bound),
        "relative": difference / found.control_value if found.control_value else np.nan,
        "p_value": found.p_value,
    }


def _standardised(rows: DataFrame, arm: str) -> DataFrame:
    """Return players, share and size of each arm, on the same mixture of days.

    Its size is the number of players that would be as informative in a single day.

    Raises:
        BadQuery: no day has players of all arms.
    """
    names = rows[arm].drop_duplicates().tolist()
    days = rows["timestamp"].fillna(pd.Timestamp(0, tz="UTC"))
    players, amount = (
        rows.assign(day=days).pivot_table(index="day", columns=arm, values=name, aggfunc="sum", fill_value=0.0)[names]
        for name in ("players", "amount")
    )
    has_players = (players.sum() > 0).to_numpy()
    is_shared = (players.loc[:, has_players] > 0).all(axis=1).to_numpy()
    if has_players.any() and not is_shared.any():
        raise BadQuery("frames", names, "have no install day with players of all arms: compare() takes them")
    n, x = players.to_numpy()[is_shared], amount.to_numpy()[is_shared]
    size = np.zeros(len(names))
    if has_players.any():
        size[has_players] = informative_players(n[:, has_players], x[:, has_players])
    with np.errstate(divide="ignore", invalid="ignore"):  # an arm without players has no share
        weight = 1 / (1 / n[:, has_players]).sum(axis=1)
        share = weight @ (x / n) / weight.sum()
    return DataFrame({"players": n.sum(axis=0), "share": share, "size": size})


def _chances(arms: DataFrame, rng: np.random.Generator, draws: int, prior: tuple[float, float]) -> DataFrame:
    """Return the columns of `probability_best` for the arms of one measure."""
    successes = (arms["share"].fillna(0.0) * arms["size"]).to_numpy()[:, None]
    failures = arms["size"].to_numpy()[:, None] - successes
    posterior = rng.beta(prior[0] + successes, prior[1] + failures, size=(len(arms), draws))
    low, high = np.quantile(posterior, [0.025, 0.975], axis=1)
    return DataFrame(
        {
            "players": arms["players"],
            "value": arms["share"],
            "low": low,
            "high": high,
            "chance_best": np.bincount(posterior.argmax(axis=0), minlength=len(arms)) / draws,
            "expected_loss": (posterior.max(axis=0) - posterior).mean(axis=1),
        }
    )
