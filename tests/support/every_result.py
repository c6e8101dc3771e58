"""A result of every public analysis of frames, small and made in a few seconds, from frames with receipts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis import (
    ads,
    changes,
    decomposition,
    experiments,
    health,
    outside_data,
    retention,
    revenue,
    totals,
)
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.receipts import QueryRecord, Receipt
from gamelens.simulator import load_scenario
from gamelens.wire.intervals import Granularity
from support.retention_frames import frame_of
from support.shared_by_workers import made_once
from support.simulated_lakes import make_lake

DAYS: Final = 28
_ACTIONS: Final = {"request": 1, "show": 2, "failed_show": 20, "clicked": 40}  # and how much rarer they are
_COUNTS: Final = ("ilrd_revenue_event_count", "user_unique", "session_unique", "ad_impressions_count", "paying_users")


def asked(frame: DataFrame, *metrics: str, by: tuple[str, ...] = (), every: Granularity = "day") -> DataFrame:
    """Return *frame* with the receipt of a query for *metrics* over its days."""
    first, last = frame["timestamp"].min(), frame["timestamp"].max() + pd.Timedelta(days=1)
    interval = f"{first:%Y-%m-%dT00:00Z}/{last:%Y-%m-%dT00:00Z}"
    record = QueryRecord(metric=metrics if len(metrics) > 1 else metrics[0], by=by, every=every, interval=interval)
    frame.attrs["gamelens"] = Receipt(asked=record, version="1", requests=1).to_json()
    return frame


def days_of(rng: np.random.Generator, names: dict[str, list[str]], **means: float) -> DataFrame:
    """Return *DAYS* days of each combination of *names*, with numbers around *means*, counts as whole numbers."""
    days = pd.date_range("2026-10-05", periods=DAYS, tz="UTC", unit="us")
    index = pd.MultiIndex.from_product([days, *names.values()], names=["timestamp", *names])
    frame = index.to_frame(index=False).astype(dict.fromkeys(names, "category"))
    for name, mean in means.items():
        is_count = name in _COUNTS or mean >= 5
        numbers = rng.poisson(mean, len(frame)) if is_count else mean * rng.lognormal(0, 0.3, len(frame))
        frame[name] = pd.Series(numbers, dtype="Int64") if is_count else numbers
    return frame


@contextmanager
def simulated_lake(state: Path) -> Iterator[LakeClient]:
    """Yield the lake of a few simulated players of two weeks, in the new directory *state*."""
    make_lake(state, load_scenario("small", players=150, days=14), now=datetime(2026, 11, 5, 12, tzinfo=UTC))
    with open_lake(state, progress=False) as lake:
        yield lake


def every_result() -> dict[str, DataFrame]:
    """Call every analysis, and return the results by its public name."""
    return _of_ads() | _of_changes() | _of_retention() | _of_experiments() | _of_health() | _of_outside_data()


def shared_results() -> dict[str, DataFrame]:
    """Return `every_result` of the first worker that asked: the analyses are called once in a run."""
    made = made_once("every_result", lambda path: path.write_bytes(pickle.dumps(every_result())))
    results: dict[str, DataFrame] = pickle.loads(made.read_bytes())
    return results


def _of_ads() -> dict[str, DataFrame]:
    rng = np.random.default_rng(1)
    names = {
        "game": ["Tile", "Roof"],
        "country_code": ["US", "BR"],
        "ilrd_network_name": ["AdMob", "Unity"],
        "ilrd_adunit_format": ["Banner", "Video"],
    }
    priced = days_of(rng, names, ilrd_revenue_event_count=300, ilrd_revenue=0.9)
    priced = ads.with_canonical_names(asked(priced, "ilrd_revenue", by=(*names,)))
    before, after = decomposition.split_in_halves(priced)
    parts = decomposition.decompose(before, after, by="network")
    actions = days_of(rng, {"ad_action": [*_ACTIONS], "ad_sdk_name": ["AdMob", "Unity"]}, event_count=400)
    rarer = actions["ad_action"].astype("object").map(_ACTIONS).astype("Int64")
    actions = asked(actions.assign(event_count=actions["event_count"] // rarer), "event_count", by=("ad_action",))
    players = asked(
        days_of(
            rng,
            {"game": ["Tile", "Roof"]},
            revenue=2.5,
            ilrd_revenue=1.5,
            user_unique=400,
            session_unique=900,
            ad_impressions_count=1200,
            paying_users=9,
        ),
        "revenue", "ilrd_revenue", "user_unique", "session_unique", "ad_impressions_count", "paying_users",
        by=("game",),
    )  # fmt: skip
    return {
        "ads.earnings": ads.earnings(priced, by="network"),
        "ads.concentration": ads.concentration(priced, by="network"),
        "ads.ecpm_index": ads.ecpm_index(priced),
        "ads.with_canonical_names": priced,
        "ads.fill_rates": ads.fill_rates(actions, by="ad_sdk_name"),
        "ads.empty_breaks": ads.empty_breaks(actions, daily=priced),
        "ads.waterfall": ads.waterfall(actions),
        "ads.per_player": ads.per_player(players, by="game"),
        "ads.per_session": ads.per_session(players, by="game"),
        "decomposition.decompose": parts,
        "decomposition.total_change": decomposition.total_change(parts),
        "decomposition.price_changes": decomposition.price_changes(before, after, by="network"),
        "revenue.revenue_by_source": revenue.revenue_by_source(players, by="game"),
        "revenue.arpdau": revenue.arpdau(players, by="game"),
        "revenue.arppu": revenue.arppu(players, by="game"),
        "revenue.payer_share": revenue.payer_share(players, by="game"),
        "totals.total": totals.total(priced),
    }


def _of_changes() -> dict[str, DataFrame]:
    names = {"game": ["Tile", "Roof"], "country_code": ["US", "BR"]}
    frame = days_of(np.random.default_rng(2), names, revenue=40, impressions=900, ad_revenue=3.0, user_unique=300)
    frame["ecpm"] = 1000 * frame["ad_revenue"] / frame["impressions"].astype("float64")
    frame = asked(frame.astype({"revenue": "float64"}), "revenue", "ecpm", "user_unique", by=(*names,))
    return {
        "changes.change": changes.change(frame),
        "changes.money_drivers": changes.money_drivers(frame, by="game"),
    }


def _cohorts(seed: int, days: int = DAYS) -> DataFrame:
    ages, installs = [1, 2, 3, 4, 5, 6, 7, 14], [400 + 10 * (day % 7) for day in range(days)]
    shares = [0.4, 0.3, 0.25, 0.22, 0.2, 0.18, 0.17, 0.12]
    rng = np.random.default_rng(seed)
    return frame_of(installs, rng.binomial(np.array(installs)[:, None], shares), ages, until=days)


def _of_retention() -> dict[str, DataFrame]:
    cohorts = _cohorts(3)
    stamps = cohorts["timestamp"].drop_duplicates().to_numpy()
    installed, day = (each.ravel() for each in np.meshgrid(np.arange(DAYS), np.arange(DAYS), indexing="ij"))
    is_after = day >= installed
    installed, day = installed[is_after], day[is_after]
    players = 400 * 0.5 / (1 + day - installed)
    money = DataFrame(
        {
            "timestamp": pd.to_datetime(stamps[day], utc=True),
            "game": pd.Categorical(["Tile"] * len(day)),
            "installed_on": pd.Categorical([str(stamps[place])[:10] for place in installed]),
            "revenue": 0.05 * players,
            "ilrd_revenue": 0.02 * players,
            "user_unique": pd.array(players.astype(int), dtype="Int64"),
        }
    )
    money = asked(money, "revenue", "ilrd_revenue", "user_unique", by=("game", "installed_on"))
    return {
        "retention.average_curve": retention.average_curve(cohorts, by="game"),
        "retention.by_half": retention.by_half(cohorts),
        "retention.cohort_matrix": retention.cohort_matrix(cohorts),
        "retention.cohort_sizes": retention.cohort_sizes(cohorts),
        "retention.compare_curves": retention.compare_curves(cohorts),
        "retention.day_range": retention.day_range(cohorts),
        "retention.day_spread": retention.day_spread(cohorts),
        "retention.drift": retention.drift(cohorts),
        "retention.ltv": retention.ltv(cohorts, money, by="game", draws=20),
        "retention.pooled": retention.pooled(cohorts),
        "retention.project_retention": retention.project_retention(cohorts, draws=20),
    }


def _of_experiments() -> dict[str, DataFrame]:
    rng = np.random.default_rng(4)
    names = {"ab_id": ["offer"], "ab_variant_id": ["ctrl", "new"]}
    installs = asked(days_of(rng, names, new_users=80), "new_users", by=(*names,))
    installed = installs["timestamp"].dt.strftime("%Y-%m-%d")
    outcome = installs.drop(columns="new_users").assign(installed_on=installed.astype("category"))
    paid = asked(
        outcome.assign(converting_users=pd.array([3, 5] * DAYS, dtype="Int64")), "converting_users", every="all"
    )
    spent = asked(outcome.assign(revenue=rng.gamma(2, 8, len(outcome))), "revenue", every="all")
    came_back = pd.concat(
        [
            _cohorts(seed).drop(columns="game").assign(ab_id="offer", ab_variant_id=name)
            for seed, name in enumerate(names["ab_variant_id"])
        ]
    ).astype({"ab_id": "category", "ab_variant_id": "category"})
    came_back.attrs = _cohorts(3).attrs
    conversions = experiments.per_new_player(installs, paid, metric="converting_users")
    money = experiments.per_new_player(installs, spent)
    compared = experiments.compare(came_back, conversions, money)
    reach = experiments.detectable_effects(came_back, conversions)
    each = DataFrame({"ab_variant_id": pd.Categorical(["ctrl", "new"] * 200), "money": rng.gamma(0.1, 8, 400)})
    return {
        "experiments.arms": experiments.arms(installs),
        "experiments.per_new_player": money,
        "experiments.payers": experiments.payers(conversions, money),
        "experiments.compare": compared,
        "experiments.detectable_effects": reach,
        "experiments.next_steps": experiments.next_steps(compared, reach),
        "experiments.probability_best": experiments.probability_best(came_back, draws=1000),
        "experiments.sample_ratio": experiments.sample_ratio(installs),
        "experiments.newest_arms": experiments.newest_arms(came_back, "ab_variant_id"),
        "experiments.compare_players": experiments.compare_players(each, "money"),
    }


def _of_health() -> dict[str, DataFrame]:
    names = {"game": ["Tile", "Roof"]}
    frames = [days_of(np.random.default_rng(seed), names, user_unique=400) for seed in (5, 6)]
    frames[1]["timestamp"] += pd.Timedelta(days=DAYS)
    frame = pd.concat(frames, ignore_index=True).astype({"game": "category"})
    frame.loc[frame.index[-1], "user_unique"] = 90
    frame = asked(frame.assign(game_id=frame["game"].cat.codes.astype(str).astype("category")), "user_unique")
    series = health.daily([frame])
    scores = health.score_days(series)
    board = health.board(scores)
    watch = next(each for each in health.watches() if each.field == "user_unique")
    by_country = days_of(np.random.default_rng(7), {"country_code": ["US", "BR"]}, user_unique=200)
    return {
        "health.daily": series,
        "health.measured": health.measured(frame, {"user_unique": "Active players"}),
        "health.score_days": scores,
        "health.board": board,
        "health.flagged": health.flagged(scores),
        "health.levels": health.levels(series),
        "health.headline": health.headline(board, health.levels(series)),
        "health.data_age": health.data_age(frame),
        "health.silent_games": health.silent_games(series),
        "health.segments": health.segments(
            asked(by_country, "user_unique"), watch, "country_code", day=by_country["timestamp"].max()
        ),
    }


def _of_outside_data() -> dict[str, DataFrame]:
    rng = np.random.default_rng(8)
    names = {"install_publisher": ["Meta", "X"]}
    cost = asked(days_of(rng, names, new_users=50, spend=30.0).astype({"spend": "float64"}), "new_users", by=(*names,))
    installed = cost["timestamp"].dt.strftime("%Y-%m-%d").astype("category")
    money = cost.drop(columns=["new_users", "spend"]).assign(installed_on=installed, revenue=rng.gamma(2, 8, len(cost)))
    money = asked(money, "revenue", by=("installed_on", *names))
    paid = outside_data.cost_per_install(cost, by="install_publisher")
    roas = outside_data.return_on_spend(cost, money, ages=[0])
    values = DataFrame(
        {
            "install_publisher": pd.Categorical(["Meta", "X"]),
            "age": pd.array([90, 90], dtype="Int64"),
            "ltv": [0.9, 0.4],
            "low": [0.6, 0.2],
            "high": [1.3, 0.8],
            "installs": pd.array([900, 800], dtype="Int64"),
            "is_projected": [True, True],
        }
    )
    days = days_of(rng, {"country_code": ["US"]}, user_unique=300, rank=40)
    days["holiday"] = pd.Categorical(["Day of Games" if place == 20 else None for place in range(len(days))])
    days = asked(days, "user_unique", by=("country_code",))
    return {
        "outside_data.cost_per_install": paid,
        "outside_data.in_dollars": outside_data.in_dollars(cost.rename(columns={"spend": "Spend"}), "Spend", 1.1),
        "outside_data.return_on_spend": roas,
        "outside_data.payback_ages": outside_data.payback_ages(roas),
        "outside_data.ltv_against_cpi": outside_data.ltv_against_cpi(values, paid),
        "outside_data.rank_correlation": outside_data.rank_correlation(days, "user_unique", "rank"),
        "outside_data.compare_with_weekdays": outside_data.compare_with_weekdays(days, "user_unique"),
    }
