"""Outcomes of arms: what retention frames and queries by install day hold."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame


def installs() -> DataFrame:
    """Return new players of two days and two variants, and of no variant."""
    return tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02", "2026-11-02"],
        ab_variant_id=["ctrl", "new", "ctrl", None],
        new_users=[10, 12, 9, 5],
    )


def test_money_of_each_install_day_is_that_of_its_players() -> None:
    """Money is matched by install day and variant, null included, and is 0 where no row has any.

    Rows without an install day are left out.
    """
    spent = tidy_frame(
        "revenue",
        installed_on=["2026-11-01", "2026-11-01", "2026-10-01", None, "2026-11-02"],
        ab_variant_id=["new", None, "ctrl", "ctrl", None],
        revenue=[4.5, 9.0, 1.0, 1.0, 2.0],
    )
    result = experiments.per_new_player(installs(), spent)
    assert result["measure"].unique().tolist() == ["revenue per player"]
    assert result[["players", "money"]].to_numpy().tolist() == [[10, 0.0], [12, 4.5], [9, 0.0], [5, 2.0]]
    assert pd.isna(result["ab_variant_id"].iloc[3])


def test_conversion_counts_variants_without_payers() -> None:
    """Conversion is per new player of the day, and 0 for a variant without payers."""
    paid = tidy_frame(
        "converting_users", installed_on=["2026-11-01", None], ab_variant_id=["ctrl", "ctrl"], converting_users=[3, 9]
    )
    result = experiments.per_new_player(installs(), paid, metric="converting_users")
    assert result["measure"].unique().tolist() == ["conversion"]
    assert result[["players", "successes"]].to_numpy().tolist() == [[10, 3], [12, 0], [9, 0], [5, 0]]


def test_an_outcome_that_is_not_by_install_day_is_refused() -> None:
    """Without installed_on the days of the arms cannot be compared; the error says what to query."""
    paid = tidy_frame("converting_users", ab_variant_id=["ctrl"], converting_users=[3])
    with pytest.raises(BadQuery, match=r'has no installed_on: use .*"converting_users"'):
        experiments.per_new_player(installs(), paid, metric="converting_users")


def test_only_cohorts_that_have_reached_an_age_count(cohorts: DataFrame) -> None:
    """Players of an arm are those of the install days that have reached the age."""
    frame = cohorts.assign(ab_variant_id=pd.Categorical(["ctrl", "new"] * 4))
    result = experiments.compare(frame, control="new")
    assert result["measure"].tolist() == ["D1 retention", "D2 retention"]
    assert result[["players", "control_players"]].to_numpy().tolist() == [[30, 5], [10, 4]]
    assert result["days"].tolist() == [2, 1]


def test_other_splits_are_added_up_unless_named(cohorts: DataFrame) -> None:
    """Games are pooled within the arms, and compared one by one with *by*."""
    arms = pd.concat([cohorts.assign(ab_variant_id=name) for name in ("ctrl", "new")], ignore_index=True)
    frame = arms.astype({"ab_variant_id": "category"})
    assert experiments.compare(frame)["players"].tolist() == [35, 14]
    assert experiments.compare(frame, by="game")["game"].tolist() == ["Tile", "Farm", "Tile", "Farm"]
