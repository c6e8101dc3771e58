"""The constants of the analyses: each has a source, and derivations give the number that stands there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from docs.constants import KINDS, constants
from gamelens.analysis.health import baseline
from gamelens.analysis.health import constants as health


def test_every_constant_has_a_source() -> None:
    """A number that nobody can derive, look up or measure again cannot be checked."""
    listed = constants()
    assert [f"{it.path}: {it.name}" for it in listed if it.kind not in KINDS or not it.about] == []
    assert len(listed) > 80


def test_a_constant_without_a_source_is_found(tmp_path: Path) -> None:
    """A rule that finds nothing would pass every module."""
    (tmp_path / "noise.py").write_text('NOISE: Final = 1.35\n"""Factor of the noise."""\nTEXT: Final = "1"\n')
    (found,) = constants(tmp_path)
    assert (found.name, found.about, found.kind) == ("NOISE", "Factor of the noise.", "")


def test_a_paper_is_cited_with_its_year() -> None:
    """So that it can be looked up."""
    papers = [it for it in constants() if it.kind == "Paper"]
    assert [it.name for it in papers if not any(f"{year}" in it.source for year in range(1920, 2027))] == []
    assert papers


def test_the_spread_of_capped_days() -> None:
    """1 over the root of the mean of min(x, CAP) squared, and 1 over the quartile of a normal distribution."""
    cap, density, beyond = health.CAP, stats.norm.pdf(health.CAP), stats.norm.cdf(-health.CAP)
    square = 1 - 2 * (cap * density + (1 - cap**2) * beyond)
    assert pytest.approx(square**-0.5, abs=1e-4) == health.CAPPED_TO_SIGMA
    assert pytest.approx(1 / stats.norm.ppf(0.75), abs=1e-4) == health.MAD_TO_SIGMA


def test_the_variance_of_medians() -> None:
    """Of two to four normal values, and of many."""
    values = np.random.default_rng(1).standard_normal((400_000, 4))
    for count in (2, 3, 4):
        variance = np.median(values[:, :count], axis=1).var()
        assert health.MEDIAN_VARIANCE[count] == pytest.approx(variance, abs=0.004)
    many = np.median(np.random.default_rng(2).standard_normal((20_000, 101)), axis=1).var()
    assert pytest.approx(101 * many, rel=0.05) == health.DAYS_OF_MEDIAN


def test_students_point_by_its_series() -> None:
    """To a thousandth from seven days on."""
    for days in (7, 14, 28, 1000):
        assert np.polyval(health.T_QUANTILE, 1 / days) == pytest.approx(stats.t.ppf(0.975, days), rel=1e-3)


@pytest.mark.wide
def test_the_degrees_of_freedom_of_a_spread() -> None:
    """With 0.6 for each day Student's tail is no thinner than the tail of days beside their weekdays."""
    days = np.random.default_rng(3).standard_normal((100_000, 57))
    weekdays = [np.median(days[:, [day - 7, day - 14, day - 21, day - 28]], axis=1) for day in range(28, 57)]
    apart = days[:, 28:] - np.stack(weekdays, axis=1)
    drift = np.median(apart[:, :-1], axis=1)
    noise = baseline._spread(apart[:, :-1] - drift[:, None]) * np.sqrt(1 + health.DAYS_OF_MEDIAN / 28)
    z = np.abs((apart[:, -1] - drift) / noise)
    for reach in (2.6, 3.0, 3.5):
        share = float(np.mean(z > reach))
        assert 0.6 < share / (2 * stats.t.sf(reach, health.SPREAD_DAYS * 28)) < 1.05


def test_thresholds_of_chance() -> None:
    """Silence, none of an expected count, a window that cannot be clear, the doubt of a variance, a wide spread."""
    assert stats.poisson.pmf(0, health.SILENT_LEAST) == pytest.approx(0.001, abs=1e-4)
    assert pytest.approx(-np.log(0.025), abs=0.02) == health.MOST_OF_NONE
    assert 0 < stats.norm.ppf(1 - health.LEVEL_P / 2) - health.LEVEL_Z < 0.01
    assert 0 < health.DOUBT - 27 / stats.chi2.ppf(0.025, 27) < 0.2
    assert stats.chi2.sf(health.WIDE**2 * 28, 28) == pytest.approx(0.03, abs=0.002)
    assert pytest.approx(stats.norm.ppf(0.975), abs=0.05) == health.GONE
