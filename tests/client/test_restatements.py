"""Restatements: past buckets whose rows changed when they were requested again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from gamelens.client.answer_cache import AnswerCache, CacheKey
from gamelens.client.tables.table_differences import FieldChange, Restatement, rows_changed
from support.cache_writer import ASKED, BEGAN_S, Clock, available, day_slice, find, keep, rows, rows_of_seed

WHOLE = CacheKey("revenue", (), "{}", adds_up=False)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> Iterator[AnswerCache]:
    """Return the cache of the owner "ann"."""
    opened = AnswerCache(tmp_path, owner="ann", now=clock)
    yield opened
    opened.close()


def restatements_of(cache: AnswerCache, old: pa.Table, new: pa.Table, key: CacheKey = ASKED) -> list[Restatement]:
    """Return the restatements of storing day 1 as *old* and then as *new*."""
    assert keep(cache, [1], old, available(2), key) == []
    changes: list[Restatement] = keep(cache, [1], new, available(2.5), key)
    return changes


def test_a_restatement_has_totals_and_times_before_and_after(cache: AnswerCache) -> None:
    """A restatement has changed rows, totals and data times of both answers."""
    old, new = rows(1, ("US", 10), ("DE", 5), (None, 1)), rows(1, ("US", 12), ("DE", 5), ("FR", 2))
    assert restatements_of(cache, old, new) == [
        Restatement(
            metric="revenue",
            dimensions=("country_code",),
            text=ASKED.text,
            interval=day_slice(1).interval,
            bucket_start=day_slice(1).bucket_start,
            before_as_of=available(2).end,
            as_of=available(2.5).end,
            rows_changed=3,
            fields=(FieldChange("event_count", 16, 19), FieldChange("sum", 16.0, 19.0)),
            noticed_at=datetime.fromtimestamp(BEGAN_S, UTC),
        )
    ]
    assert find(cache, [1], available(2.5), fresh_s=9) == new


def test_restatements_are_listed_oldest_first_and_by_metric(cache: AnswerCache) -> None:
    """Restatements are listed oldest first, of all metrics or of one."""
    other = msgspec.structs.replace(ASKED, metric="ilrd_revenue")
    changes = [restatements_of(cache, rows_of_seed(1, 1), rows_of_seed(1, 2), key)[0] for key in (ASKED, other)]
    assert cache.restatements() == changes
    assert cache.restatements("ilrd_revenue") == changes[1:]
    assert cache.restatements("arpu") == []


def test_restatements_outlive_the_rows(cache: AnswerCache, tmp_path: Path) -> None:
    """Restatements stay listed after their rows were removed from the cache."""
    changes = restatements_of(cache, rows_of_seed(1, 1), rows_of_seed(1, 2))
    cache.close()
    later = AnswerCache(tmp_path, owner="ann", max_bytes=0)
    later.keep(ASKED, [day_slice(2)], rows_of_seed(2, 1), available=available(9))
    assert later.restatements() == changes
    later.close()


def test_a_settled_bucket_requested_again_is_compared_too(cache: AnswerCache) -> None:
    """A settled bucket that is requested again is compared too."""
    keep(cache, [1], rows_of_seed(1, 1), available(9))
    (changes,) = keep(cache, [1], rows_of_seed(1, 2), available(9))
    assert changes.rows_changed == 5


def test_only_changed_slices_are_restated(cache: AnswerCache) -> None:
    """Of three stored slices only the one with changed rows is restated."""
    keep(cache, [1, 2, 3], pa.concat_tables([rows_of_seed(day, 1) for day in (1, 2, 3)]))
    changes = keep(cache, [2, 3, 4], pa.concat_tables([rows_of_seed(2, 1), rows_of_seed(3, 2), rows_of_seed(4, 2)]))
    assert [check.interval for check in changes] == [day_slice(3).interval]


def test_each_of_many_days_is_compared(cache: AnswerCache) -> None:
    """Days that were stored one by one are compared with those of one answer."""
    for day in range(30):
        keep(cache, [day], rows_of_seed(day, 1))
    changes = keep(cache, range(30), pa.concat_tables([rows_of_seed(day, 1 + (day == 17)) for day in range(30)]))
    assert [check.interval for check in changes] == [day_slice(17).interval]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(rows(1, ("a", 1), ("b", 2)), rows(1, ("b", 2), ("a", 1)), id="another order"),
        pytest.param(rows(1, ("a", 1e6)), rows(1, ("a", 1e6 + 1e-4)), id="the tenth digit"),
        pytest.param(rows(1, ("a", float(3))), rows(1, ("a", 3)), id="3.0 and 3"),
        pytest.param(rows(1, ("a", 1)), rows(1, ("a", 1), new=pa.array([4])), id="an added field"),
        pytest.param(
            rows(1, ("a", 1), m=pa.array([float("nan")])), rows(1, ("a", 1), m=pa.array([float("nan")])), id="NaN"
        ),
        pytest.param(rows(1), rows(1), id="nothing"),
        pytest.param(rows(1, ("a", 1), m=pa.array([2])), rows(1, ("a", 1), m=pa.array([2.0])), id="another type"),
    ],
)
def test_equal_rows_are_no_restatement(cache: AnswerCache, old: pa.Table, new: pa.Table) -> None:
    """Order, the tenth digit, another number type and added fields are not changes."""
    assert restatements_of(cache, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param(rows(1, ("a", 1e6)), rows(1, ("a", 1e6 + 1e-2)), 1, id="the eighth digit"),
        pytest.param(rows(1, (None, 1)), rows(1, ("", 1)), 2, id="null and empty"),
        pytest.param(rows(1, ("a", 1), ("a", 2)), rows(1, ("a", 1)), 1, id="one of two rows alike"),
        pytest.param(rows(1, ("a", 1), m=["x"]), rows(1, ("a", 1), m=["y"]), 1, id="a text"),
        pytest.param(
            rows(1, ("a", 1), m=pa.array([None], pa.int64())), rows(1, ("a", 1), m=pa.array([0])), 1, id="null"
        ),
        pytest.param(
            rows(1, ("a", 1), m=pa.array([2**60])),
            rows(1, ("a", 1), m=pa.array([2**60 + 1])),
            1,
            id="whole numbers exactly",
        ),
        pytest.param(rows(1), rows(1, ("a", 1), ("b", 1)), 2, id="from no rows"),
        pytest.param(rows(1, ("a", 1)), rows(1), 1, id="to no rows"),
    ],
)
def test_added_removed_and_changed_rows_are_counted(
    cache: AnswerCache, old: pa.Table, new: pa.Table, changed: int
) -> None:
    """Each row that is added, removed or different counts once."""
    assert [restatement.rows_changed for restatement in restatements_of(cache, old, new)] == [changed]


def test_totals_of_no_rows_are_0(cache: AnswerCache) -> None:
    """The total before the first rows is 0."""
    (changes,) = restatements_of(cache, rows(1), rows(1, ("a", 4)))
    assert changes.fields == (FieldChange("event_count", 0, 4), FieldChange("sum", 0, 4.0))


def test_rows_that_do_not_add_up_have_no_totals(cache: AnswerCache) -> None:
    """Fields of a metric that does not add up have no totals."""
    key = msgspec.structs.replace(ASKED, metric="user_unique", adds_up=False)
    (changes,) = restatements_of(cache, rows(1, ("a", 1)), rows(1, ("a", 2)), key)
    assert changes.fields == (FieldChange("event_count", None, None), FieldChange("sum", None, None))


def test_a_mean_of_several_rows_has_no_total(cache: AnswerCache) -> None:
    """The catalog says that a mean is not summed over rows."""
    tables = [rows(1, ("a", number), ("b", 1), mean=pa.array([number, 1.0])) for number in (1.0, 2.0)]
    (changes,) = restatements_of(cache, *tables)
    assert changes.fields[-1] == FieldChange("mean", None, None)


def test_one_row_is_its_own_total(cache: AnswerCache) -> None:
    """With a single row and no dimensions every field is its own total."""

    def row(mean: float | None) -> pa.Table:
        return rows(1, ("a", 1), mean=pa.array([mean], pa.float64())).drop_columns(["country_code", "event_count"])

    (changes,) = restatements_of(cache, row(None), row(2.5), WHOLE)
    assert changes.fields == (FieldChange("sum", 1.0, 1.0), FieldChange("mean", None, 2.5))


def test_texts_have_no_totals(cache: AnswerCache) -> None:
    """Text columns are left out of the totals."""
    (changes,) = restatements_of(cache, rows(1, ("a", 1), m=["x"]), rows(1, ("a", 1), m=["y"]))
    assert [check.field for check in changes.fields] == ["event_count", "sum"]


def test_restatements_are_forgotten_after_a_year(cache: AnswerCache, clock: Clock) -> None:
    """Restatements older than 366 days are removed."""
    restatements_of(cache, rows_of_seed(1, 1), rows_of_seed(1, 2))
    clock.advance(367 * 86_400)
    later = keep(cache, [1], rows_of_seed(1, 3))
    assert cache.restatements() == later


@pytest.mark.parametrize(("noticed_between", "kept"), [(99_998, 2), (99_999, 1)])
def test_restatements_are_100_000_at_most(cache: AnswerCache, noticed_between: int, kept: int) -> None:
    """The oldest go first."""
    restatements_of(cache, rows_of_seed(1, 1), rows_of_seed(1, 2))
    with sqlite3.connect(cache.folder / "answers-2" / "answers.sqlite") as other:
        other.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'restatement'", (noticed_between,))
    other.close()
    keep(cache, [1], rows_of_seed(1, 3))
    assert len(cache.restatements()) == kept


def test_rows_without_dimensions_are_compared_one_by_one() -> None:
    """Rows without dimension columns are compared by their fields."""
    table = rows(1, ("a", 1)).drop_columns(["country_code"])
    assert rows_changed(table, table, ()) == 0
    assert rows_changed(table, rows(1, ("a", 2)).drop_columns(["country_code"]), ()) == 1


def test_an_absent_dimension_column_counts_as_null() -> None:
    """A table without a dimension column equals one in which it is null."""
    bare = rows(1, (None, 1))
    assert rows_changed(bare.drop_columns(["country_code"]), bare, ("country_code",)) == 0
