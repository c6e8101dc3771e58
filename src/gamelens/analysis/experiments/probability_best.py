"""The probability that each arm of an experiment is the best: Bayesian, with a Beta prior for each share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.experiments.arm_outcomes import MEASURE, VARIANT, groups, key_columns, outcomes_of
from gamelens.analysis.experiments.arm_pairs import informative_players
from gamelens.analysis.experiments.constants import DRAWS
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames.columns import OF_MEASURE
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery


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
    draws: int = DRAWS,
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
