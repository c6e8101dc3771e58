"""Two arms compared by us, by statsmodels, tea-tasting and GrowthBook: the same inputs, and why answers differ.

Run by `make bench` (-s shows the tables); RUNS in the environment sets how many experiments are drawn. Libraries are
installed at the first call into environments of their own; without an index of packages their tests are skipped.

Shares. Our interval of one look is Newcombe's, made of Wilson's, as statsmodels has it. tea-tasting and GrowthBook take
the normal interval, symmetric around the estimate: it agrees for many players, and for few of them or for rare
successes it holds the truth less often. Our relative interval is made of Wilson's too; tea-tasting's is the delta
method on the logarithm, GrowthBook's on the ratio itself, so it is symmetric and too short above a small control.

Means of players. All have Welch's interval. tea-tasting estimates the slope of a covariate over both arms together,
we within arms, where an effect does not move it; the intervals differ by less than a fiftieth of their width. Our
relative interval is Fieller's, which excludes no effect where the difference does; the delta method does not always.

Speed. The peers read sums that were made before; ours reads a frame, adds it up and checks it.

Looks. GrowthBook's sequential interval is Waudby-Smith's, tuned to 5,000 players; ours is a mixture over effects of a
fifth of the level. Both hold at every look; which is narrower depends on the players, not on the data.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pandas import DataFrame
from statsmodels.stats.proportion import confint_proportions_2indep
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from gamelens.analysis import experiments
from support.experiment_frames import many
from support.peer_environments import peer_python

Floats = NDArray[np.float64]

RUNS = int(os.environ.get("RUNS", "300"))
HERE = Path(__file__).parent
PEERS = {
    "GrowthBook": ("growthbook", "gbstats==0.8.0"),
    "tea-tasting": ("tea_tasting", "tea-tasting==1.14.0"),
}
SETTINGS = [(3000, 0.30, 0.02), (3000, 0.02, 0.0), (60, 0.30, 0.0), (60, 0.03, 0.0)]


def asked(peer: str, folder: Path, pairs: list[list[dict[str, Any]]]) -> tuple[dict[str, Floats], float]:
    """Return what *peer* answers for *pairs* of arms: intervals of the shape (experiments, 2), and the seconds."""
    program, package = PEERS[peer]
    python = peer_python(program, package)
    (folder / "arms.json").write_text(json.dumps(pairs))
    script = HERE / "peers" / f"{program}_arms.py"
    subprocess.run([python, script, folder / "arms.json", folder / "answers.json"], check=True)
    found = json.loads((folder / "answers.json").read_text())
    return {name: np.array([it[name] for it in found["answers"]]) for name in found["answers"][0]}, found["seconds"]


def held(bounds: Floats, truth: float) -> float:
    """Return how many of the intervals that are known hold *truth*."""
    known = bounds[np.isfinite(bounds).all(axis=1)]
    return float(np.mean((known[:, 0] <= truth) & (truth <= known[:, 1])))


def show(intervals: Mapping[str, Floats], truth: float) -> None:
    """Print coverage and the mean width of each interval."""
    for name, bounds in intervals.items():
        known = bounds[np.isfinite(bounds).all(axis=1)]
        print(f"  {name:34} holds {held(bounds, truth):6.1%}, width {np.mean(known[:, 1] - known[:, 0]):.4f}")


@pytest.mark.parametrize(("players", "share", "effect"), SETTINGS)
def test_two_shares_beside_peers(players: int, share: float, effect: float, tmp_path: Path) -> None:
    """Ours holds the truth, is Newcombe's of statsmodels, and for many players as wide as theirs within a tenth."""
    rng = np.random.default_rng(37)
    base, treated = rng.binomial(players, share, RUNS), rng.binomial(players, share + effect, RUNS)
    began = time.perf_counter()
    compared = experiments.compare(many(players, base, treated))
    own_s = time.perf_counter() - began
    own, relative = (compared[[f"{name}low", f"{name}high"]].to_numpy("float64") for name in ("", "relative_"))
    counts = list(zip(treated.tolist(), base.tolist(), strict=True))
    newcombe = np.array(
        [
            confint_proportions_2indep(new, players, old, players, method="newcomb", compare="diff")
            for new, old in counts
        ]
    )
    growthbook, growthbook_s = asked(
        "GrowthBook", tmp_path, [[{"n": players, "sum": count} for count in pair] for pair in counts]
    )
    tea, tea_s = asked(
        "tea-tasting", tmp_path, [[{"n": players, "mean": count / players} for count in pair] for pair in counts]
    )
    print(f"\n{players:,} players an arm, {share:.0%} {effect:+.0%}, {RUNS} experiments")
    show(
        {
            "ours": own,
            "statsmodels, Newcombe": newcombe,
            "tea-tasting, normal": tea["once"],
            "GrowthBook, Welch": growthbook["once"],
        },
        effect,
    )
    relatives = {
        "ours, relative": relative,
        "tea-tasting, logarithm": tea["relative"],
        "GrowthBook, symmetric": growthbook["relative"],
    }
    show(relatives, effect / share)
    print(
        f"  time of tea-tasting as a multiple of ours: {tea_s / own_s:.1f}, of GrowthBook: {growthbook_s / own_s:.1f}"
    )
    is_selected = (compared["p_adjusted"] < 0.05).to_numpy()
    assert own[~is_selected] == pytest.approx(newcombe[~is_selected], abs=1e-9)
    doubt = 2 * np.sqrt(0.05 * 0.95 / RUNS)
    assert held(own, effect) + doubt >= 0.93
    assert held(relative, effect / share) + doubt >= 0.93
    if players >= 3000:
        for bounds in (growthbook["once"], tea["once"]):
            assert np.mean(own[:, 1] - own[:, 0]) == pytest.approx(np.mean(bounds[:, 1] - bounds[:, 0]), rel=0.1)
        theirs = tea["relative"]
        assert np.median(relative[:, 1] - relative[:, 0]) == pytest.approx(
            np.median(theirs[:, 1] - theirs[:, 0]), rel=0.1
        )


@pytest.mark.parametrize(("sigma", "covariate"), [(0.5, None), (1.5, None), (0.5, "before")])
def test_means_of_players_beside_peers(sigma: float, covariate: str | None, tmp_path: Path) -> None:
    """The difference is the one of both peers; the relative interval holds the truth and agrees with the p-value."""
    rng, players, effect = np.random.default_rng(38), 300, 0.1
    before = rng.lognormal(0, sigma, (RUNS, 2, players))
    money = 0.5 * before + 0.5 * rng.lognormal(0, sigma, before.shape)
    money[:, 0] *= 1 + effect  # the arm, then its control
    frame = DataFrame(
        {
            "ab_id": np.repeat([f"{run:04}" for run in range(RUNS)], 2 * players),
            "ab_variant_id": np.tile(np.repeat(["new", "ctrl"], players), RUNS),
            "money": money.ravel(),
            "before": before.ravel(),
        }
    )
    began = time.perf_counter()
    compared = experiments.compare_players(frame, "money", covariate=covariate)
    own_s = time.perf_counter() - began
    compared = compared.sort_values("ab_id")
    own, relative = (compared[[f"{name}low", f"{name}high"]].to_numpy("float64") for name in ("", "relative_"))
    rows: list[list[dict[str, Any]]] = []
    for run in range(RUNS):
        rows.append([])
        for arm in range(2):
            moments = np.cov(money[run, arm], before[run, arm])
            row = {"n": players, "mean": money[run, arm].mean(), "var": moments[0, 0]}
            more = {"before": before[run, arm].mean(), "before_var": moments[1, 1], "cov": moments[0, 1]}
            rows[-1].append(row | more if covariate else row)
    tea, tea_s = asked("tea-tasting", tmp_path, rows)
    intervals = {"ours": own, "tea-tasting": tea["once"]}
    relatives = {"ours, relative": relative, "tea-tasting, logarithm": tea["relative"]}
    times = f"time of tea-tasting, of sums, as a multiple of ours, of players: {tea_s / own_s:.1f}"
    if not covariate:
        sums = [
            [{"n": players, "sum": float(arm.sum()), "sum_squares": float((arm**2).sum())} for arm in pair]
            for pair in money
        ]
        growthbook, growthbook_s = asked("GrowthBook", tmp_path, sums)
        welch = [CompareMeans(*map(DescrStatsW, pair)).tconfint_diff(usevar="unequal") for pair in money]
        intervals |= {"statsmodels, Welch": np.array(welch), "GrowthBook, Welch": growthbook["once"]}
        relatives["GrowthBook, symmetric"] = growthbook["relative"]
        times += f", of GrowthBook: {growthbook_s / own_s:.1f}"
    print(f"\n{players} players an arm, log-normal (sigma {sigma}), covariate {covariate}, {RUNS} experiments")
    if not covariate:
        truth = effect * np.exp(sigma**2 / 2)
        show(intervals, truth)
    show(relatives, effect)
    clear = ~((relative[:, 0] <= 0) & (relative[:, 1] >= 0))
    theirs = ~((tea["relative"][:, 0] <= 0) & (tea["relative"][:, 1] >= 0))
    print(f"  tea-tasting's relative interval and its p-value disagree in {np.mean(theirs != (tea['p'] < 0.05)):.1%}")
    print(f"  {times}")
    wide = (own[:, 1] - own[:, 0]).mean()
    assert own == pytest.approx(tea["once"], abs=0.02 * wide if covariate else 1e-9)
    assert (clear == (compared["p_value"] < 0.05).to_numpy()).all()
    assert held(relative, effect) + 2 * np.sqrt(0.05 * 0.95 / RUNS) >= 0.93
    if not covariate:
        assert own == pytest.approx(intervals["statsmodels, Welch"], abs=1e-9)
