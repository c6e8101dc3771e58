"""What the service said otherwise the second time (analyst-api, Names: refresh, restatements)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from gamelens.client.cache import index_queries
from gamelens.client.cache.answer_cache import AnswerCache, CacheKey
from gamelens.client.cache.sqlite_index import SqliteIndex
from gamelens.client.tables.table_differences import FieldChange, Restatement, rows_changed
from support.cache_writer import ASKED, BEGAN_S, Clock, available, find, keep, of_seed, rows, unit

WHOLE = CacheKey("revenue", (), "{}", adds_up=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> Iterator[AnswerCache]:
    made = AnswerCache(tmp_path, owner="ann", now=clock)
    yield made
    made.close()


def twice(cache: AnswerCache, old: pa.Table, new: pa.Table, asked: CacheKey = ASKED) -> list[Restatement]:
    """What is restated when day 1 is *old* first and then *new*."""
    assert keep(cache, [1], old, available(2), asked) == []
    found: list[Restatement] = keep(cache, [1], new, available(2.5), asked)
    return found


def test_a_restatement_says_what_moved_from_when_to_when(cache: AnswerCache) -> None:
    old, new = rows(1, ("US", 10), ("DE", 5), (None, 1)), rows(1, ("US", 12), ("DE", 5), ("FR", 2))
    assert twice(cache, old, new) == [
        Restatement(
            metric="revenue",
            dimensions=("country_code",),
            text=ASKED.text,
            interval=unit(1).interval,
            stamp=unit(1).stamp,
            before_as_of=available(2).end,
            as_of=available(2.5).end,
            rows_changed=3,
            fields=(FieldChange("event_count", 16, 19), FieldChange("sum", 16.0, 19.0)),
            noticed_at=datetime.fromtimestamp(BEGAN_S, UTC),
        )
    ]
    assert find(cache, [1], available(2.5), fresh_s=9) == new


def test_restatements_are_listed_oldest_first_and_by_metric(cache: AnswerCache) -> None:
    other = msgspec.structs.replace(ASKED, metric="ilrd_revenue")
    found = [twice(cache, of_seed(1, 1), of_seed(1, 2), asked)[0] for asked in (ASKED, other)]
    assert cache.restatements() == found
    assert cache.restatements("ilrd_revenue") == found[1:]
    assert cache.restatements("arpu") == []


def test_restatements_outlive_the_rows(cache: AnswerCache, tmp_path: Path) -> None:
    found = twice(cache, of_seed(1, 1), of_seed(1, 2))
    cache.close()
    later = AnswerCache(tmp_path, owner="ann", max_bytes=0)
    later.keep(ASKED, [unit(2)], of_seed(2, 1), available=available(9))
    assert later.restatements() == found
    later.close()


def test_the_settled_takes_part_when_it_is_asked_again(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1), available(9))
    (found,) = keep(cache, [1], of_seed(1, 2), available(9))
    assert found.rows_changed == 5


def test_only_units_that_changed_are_restated(cache: AnswerCache) -> None:
    keep(cache, [1, 2, 3], pa.concat_tables([of_seed(day, 1) for day in (1, 2, 3)]))
    found = keep(cache, [2, 3, 4], pa.concat_tables([of_seed(2, 1), of_seed(3, 2), of_seed(4, 2)]))
    assert [it.interval for it in found] == [unit(3).interval]


def test_what_was_merged_with_other_files_is_compared_too(cache: AnswerCache) -> None:
    for day in range(30):
        keep(cache, [day], of_seed(day, 1))
    found = keep(cache, range(30), pa.concat_tables([of_seed(day, 1 + (day == 17)) for day in range(30)]))
    assert [it.interval for it in found] == [unit(17).interval]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(rows(1, ("a", 1), ("b", 2)), rows(1, ("b", 2), ("a", 1)), id="another order"),
        pytest.param(rows(1, ("a", 1e6)), rows(1, ("a", 1e6 + 1e-4)), id="the tenth digit"),
        pytest.param(rows(1, ("a", float(3))), rows(1, ("a", 3)), id="3.0 and 3"),
        pytest.param(rows(1, ("a", 1)), rows(1, ("a", 1), new=pa.array([4])), id="a field more"),
        pytest.param(
            rows(1, ("a", 1), m=pa.array([float("nan")])), rows(1, ("a", 1), m=pa.array([float("nan")])), id="NaN"
        ),
        pytest.param(rows(1), rows(1), id="nothing"),
        pytest.param(rows(1, ("a", 1), m=pa.array([2])), rows(1, ("a", 1), m=pa.array([2.0])), id="another type"),
    ],
)
def test_what_says_the_same_is_no_restatement(cache: AnswerCache, old: pa.Table, new: pa.Table) -> None:
    assert twice(cache, old, new) == []


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
        pytest.param(rows(1), rows(1, ("a", 1), ("b", 1)), 2, id="where nothing was"),
        pytest.param(rows(1, ("a", 1)), rows(1), 1, id="where nothing is"),
    ],
)
def test_rows_that_came_went_or_changed_are_counted(
    cache: AnswerCache, old: pa.Table, new: pa.Table, changed: int
) -> None:
    assert [it.rows_changed for it in twice(cache, old, new)] == [changed]


def test_totals_of_nothing_are_0(cache: AnswerCache) -> None:
    (found,) = twice(cache, rows(1), rows(1, ("a", 4)))
    assert found.fields == (FieldChange("event_count", 0, 4), FieldChange("sum", 0, 4.0))


def test_rows_that_do_not_add_up_have_no_totals(cache: AnswerCache) -> None:
    asked = msgspec.structs.replace(ASKED, metric="user_unique", adds_up=False)
    (found,) = twice(cache, rows(1, ("a", 1)), rows(1, ("a", 2)), asked)
    assert found.fields == (FieldChange("event_count", None, None), FieldChange("sum", None, None))


def test_a_mean_has_no_total_where_there_are_groups(cache: AnswerCache) -> None:
    """catalog: how a field combines."""
    tables = [rows(1, ("a", number), ("b", 1), mean=pa.array([number, 1.0])) for number in (1.0, 2.0)]
    (found,) = twice(cache, *tables)
    assert found.fields[-1] == FieldChange("mean", None, None)


def test_one_row_is_its_own_total(cache: AnswerCache) -> None:
    def row(mean: float | None) -> pa.Table:
        return rows(1, ("a", 1), mean=pa.array([mean], pa.float64())).drop_columns(["country_code", "event_count"])

    (found,) = twice(cache, row(None), row(2.5), WHOLE)
    assert found.fields == (FieldChange("sum", 1.0, 1.0), FieldChange("mean", None, 2.5))


def test_texts_have_no_totals(cache: AnswerCache) -> None:
    (found,) = twice(cache, rows(1, ("a", 1), m=["x"]), rows(1, ("a", 1), m=["y"]))
    assert [it.field for it in found.fields] == ["event_count", "sum"]


def test_what_was_damaged_is_compared_with_nothing(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    (path,) = (cache.folder / "answers").glob("*.parquet")
    path.write_bytes(b"nothing of the kind")
    assert keep(cache, [1], of_seed(1, 2)) == []
    assert find(cache, [1]) == of_seed(1, 2)


def test_restatements_are_forgotten_after_a_year(cache: AnswerCache, clock: Clock) -> None:
    twice(cache, of_seed(1, 1), of_seed(1, 2))
    clock.advance(367 * 86_400)
    later = keep(cache, [1], of_seed(1, 3))
    assert cache.restatements() == later


def test_restatements_are_100_000_at_most(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path, patience_s=1)

    def add(db: Any) -> tuple[int, bytes]:
        bodies = [b"%d" % number for number in range(100_003)]
        index_queries.add_restatements(db, "ann", "revenue", bodies, noticed_at=0.0)
        kept = index_queries.restatements(db, "ann", None)
        return len(kept), kept[0]

    assert index.run(add, writing=True) == (100_000, b"3")
    index.close()


def test_rows_without_dimensions_are_compared_one_by_one() -> None:
    table = rows(1, ("a", 1)).drop_columns(["country_code"])
    assert rows_changed(table, table, ()) == 0
    assert rows_changed(table, rows(1, ("a", 2)).drop_columns(["country_code"]), ()) == 1


def test_a_dimension_that_is_missing_is_null() -> None:
    bare = rows(1, (None, 1))
    assert rows_changed(bare.drop_columns(["country_code"]), bare, ("country_code",)) == 0
