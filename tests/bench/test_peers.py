"""Two arms compared by us, by statsmodels and by GrowthBook: the same players, and why answers differ.

Run by `make bench`; RUNS in the environment sets how many experiments are drawn. GrowthBook's `gbstats` is installed at
the first call into an environment of its own; without an index of packages its part is skipped. Of differences:

- Their interval of one look is Welch's, symmetric around the estimate. Ours is Newcombe's, made of Wilson's intervals,
  which agrees with it for many players, and stays right for few of them and for rare successes.
- Their sequential interval is Waudby-Smith's, tuned to 5,000 players; ours is a mixture over effects of a fifth of the
  level. Both hold at every look; which is narrower depends on the players, not on the data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

from gamelens.analysis import experiments
from support.experiment_frames import many

RUNS = int(os.environ.get("RUNS", "300"))
HERE = Path(__file__).parent
GROWTHBOOK = "gbstats==0.8.0"
SETTINGS = [(3000, 0.30, 0.02), (3000, 0.02, 0.0), (60, 0.30, 0.0), (60, 0.03, 0.0)]


def growthbook(folder: Path, arms: list[list[int]]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the intervals of one look and at all looks, shape (experiments, 2), and the seconds that they took."""
    environment = Path(__file__).parents[2] / ".cache" / "peers-growthbook"
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", GROWTHBOOK]
        if subprocess.run(pip, check=False).returncode:
            pytest.skip("gbstats cannot be installed: no index of packages")
    (folder / "arms.json").write_text(json.dumps(arms))
    script = HERE / "peers" / "growthbook_arms.py"
    subprocess.run([python, script, folder / "arms.json", folder / "answers.json"], check=True)
    found = json.loads((folder / "answers.json").read_text())
    once, always = (np.array([answer[name] for answer in found["answers"]]) for name in ("once", "always"))
    return once, always, found["seconds"]


@pytest.mark.parametrize(("players", "share", "effect"), SETTINGS)
def test_two_arms_beside_peers(players: int, share: float, effect: float, tmp_path: Path) -> None:
    """Ours holds the truth, is Newcombe's of statsmodels, and for many players as wide as theirs within a tenth."""
    rng = np.random.default_rng(37)
    base, treated = rng.binomial(players, share, RUNS), rng.binomial(players, share + effect, RUNS)
    began = time.perf_counter()
    compared = experiments.compare(many(players, base, treated))
    own_s = time.perf_counter() - began
    own = compared[["low", "high"]].to_numpy("float64")
    pairs = list(zip(treated.tolist(), base.tolist(), strict=True))
    newcombe = np.array(
        [confint_proportions_2indep(new, players, old, players, method="newcomb", compare="diff") for new, old in pairs]
    )
    theirs, _, their_s = growthbook(tmp_path, [[players, new, players, old] for new, old in pairs])
    print(f"\n{players:,} players an arm, {share:.0%} {effect:+.0%}, {RUNS} experiments")
    for name, bounds in (("ours", own), ("statsmodels, Newcombe", newcombe), ("GrowthBook, Welch", theirs)):
        held = np.mean((bounds[:, 0] <= effect) & (effect <= bounds[:, 1]))
        print(f"  {name:24} holds {held:.1%}, width {np.mean(bounds[:, 1] - bounds[:, 0]):.4f}")
    print(f"  time of GrowthBook as a multiple of ours: {their_s / own_s:.1f}")
    is_selected = (compared["p_adjusted"] < 0.05).to_numpy()
    assert own[~is_selected] == pytest.approx(newcombe[~is_selected], abs=1e-9)
    held = np.mean((own[:, 0] <= effect) & (effect <= own[:, 1]))
    assert held + 2 * np.sqrt(0.05 * 0.95 / RUNS) >= 0.93
    if players >= 3000:
        assert np.mean(own[:, 1] - own[:, 0]) == pytest.approx(np.mean(theirs[:, 1] - theirs[:, 0]), rel=0.1)
