"""The cache of answered buckets: what it finds, for how long, and how large it gets."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.answer_cache import AnswerCache, CacheKey, cache_folder
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.wire.intervals import Interval
from support.cache_writer import (
    ASKED,
    DAY,
    LATER,
    STAMP,
    START,
    Clock,
    available,
    day_slice,
    day_slices,
    find,
    found_days,
    keep,
    rows,
    rows_of_seed,
)
from support.hypothesis_profiles import examples


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., AnswerCache]]:
    """Return a factory of caches in one folder, all closed after the test."""
    caches: list[AnswerCache] = []

    def make(**options: Any) -> AnswerCache:
        defaults: dict[str, Any] = {"owner": "ann", "now": clock}
        caches.append(AnswerCache(tmp_path / "cache", **defaults | options))
        return caches[-1]

    yield make
    for cache in caches:
        cache.close()


@pytest.fixture
def cache(make: Callable[..., AnswerCache]) -> AnswerCache:
    """Return the cache of the owner "ann"."""
    return make()


def file_of(cache: AnswerCache) -> Path:
    """Return the file of *cache*."""
    return cache.folder / "answers-2" / "answers.sqlite"


# Lookups


def test_stored_rows_are_found_unchanged(cache: AnswerCache) -> None:
    """Stored rows come back with equal values, nulls, column order and schema metadata."""
    table = rows(1, ("US", 10.5), (None, 2), ("NA", 3), note=["{}", None, "[1]"])
    keep(cache, [1], table)
    result = find(cache, [1])
    assert result is not None
    assert result.equals(table)
    assert result.schema.equals(table.schema, check_metadata=True)


def test_an_empty_cache_finds_nothing(cache: AnswerCache) -> None:
    """An empty cache returns no table and no bucket slices."""
    result = cache.find(ASKED, day_slices([1, 2]), available=LATER, fresh_s=0)
    assert (result.table, result.slices) == (None, frozenset())


def test_a_lookup_of_no_bucket_slices_finds_nothing(cache: AnswerCache) -> None:
    """A lookup of no bucket slices returns no table."""
    assert find(cache, []) is None


def test_cached_days_are_found_among_missing_ones(cache: AnswerCache) -> None:
    """A lookup of five days of which two are cached finds exactly those two."""
    keep(cache, [1, 3], pa.concat_tables([rows_of_seed(1, 1), rows_of_seed(3, 1)]))
    assert found_days(cache, range(5)) == [1, 3]


def test_rows_have_the_order_of_the_requested_slices(cache: AnswerCache) -> None:
    """Rows are returned in the order of the requested slices, however they were stored."""
    for days in ([4, 5], [1], [2, 3]):
        keep(cache, days, pa.concat_tables([rows_of_seed(day, 1) for day in days]))
    assert find(cache, [3, 1, 5, 2]) == pa.concat_tables([rows_of_seed(day, 1) for day in (3, 1, 5, 2)])


def test_rows_of_one_bucket_keep_their_order_however_buckets_are_mixed(cache: AnswerCache) -> None:
    """Rows of one bucket keep their order even if a stored table interleaves buckets."""
    one, two = rows(1, ("b", 3), ("a", 2), ("c", 9)), rows(2, ("z", 1), ("b", 7), ("a", 8))
    mixed = pa.concat_tables([two.slice(0, 1), one.slice(0, 2), two.slice(1, 1), one.slice(2), two.slice(2)])
    keep(cache, [1, 2], mixed)
    assert find(cache, [1, 2]) == pa.concat_tables([one, two])


def test_a_bucket_without_rows_is_cached_too(cache: AnswerCache) -> None:
    """A bucket stored without rows counts as cached and is not requested again."""
    keep(cache, [1, 2, 3], rows_of_seed(2, 1))
    assert found_days(cache, [1, 2, 3]) == [1, 2, 3]
    assert find(cache, [1, 2, 3]) == rows_of_seed(2, 1)


def test_a_cached_empty_answer_keeps_its_columns(cache: AnswerCache) -> None:
    """An answer without rows is found again as an empty table with all its columns."""
    keep(cache, [1, 2], rows(1))
    assert find(cache, [1, 2]) == rows(1)


def test_a_slice_requested_twice_is_returned_once(cache: AnswerCache) -> None:
    """A bucket slice that is requested twice contributes its rows once."""
    keep(cache, [1], rows_of_seed(1, 1))
    assert find(cache, [1, 1]) == rows_of_seed(1, 1)


def test_part_of_a_bucket_is_another_slice(cache: AnswerCache) -> None:
    """Half a day is not answered from the cached whole day."""
    keep(cache, [1], rows_of_seed(1, 1))
    morning = BucketSlice(Interval(START + DAY, START + DAY * 1.5), START + DAY)
    assert not cache.fresh_slices(ASKED, [morning], available=LATER, fresh_s=9)


def test_the_same_interval_in_another_bucket_is_another_slice(cache: AnswerCache) -> None:
    """The same interval with another bucket start is not answered from the cache."""
    keep(cache, [1], rows_of_seed(1, 1))
    stamped = BucketSlice(day_slice(1).interval, START)
    assert not cache.fresh_slices(ASKED, [stamped], available=LATER, fresh_s=9)


@pytest.mark.parametrize(
    "other",
    [
        CacheKey("ilrd_revenue", ASKED.dimensions, ASKED.text, adds_up=True),
        CacheKey("revenue", ("platform",), ASKED.text, adds_up=True),
        CacheKey("revenue", ASKED.dimensions, '{"every":"week"}', adds_up=True),
    ],
)
def test_another_query_is_not_answered(cache: AnswerCache, other: CacheKey) -> None:
    """Rows are found only for the same metric, dimensions and query text."""
    keep(cache, [1], rows_of_seed(1, 1))
    assert found_days(cache, [1], key=other) == []


def test_rows_of_another_owner_are_never_found(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """One owner sees neither rows nor restatements nor counts of another."""
    other = make(owner="bob")
    keep(cache, [1], rows_of_seed(1, 1))
    keep(cache, [1], rows_of_seed(1, 2))
    assert found_days(other, [1]) == []
    assert (other.restatements(), other.info().buckets) == ([], 0)


def test_another_cache_of_the_same_folder_finds_the_rows(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """Rows stored by one cache are found by the next cache opened on the folder."""
    keep(cache, [1], rows_of_seed(1, 1))
    cache.close()
    assert find(make(), [1]) == rows_of_seed(1, 1)


def test_rows_outside_the_stored_slices_are_refused(cache: AnswerCache) -> None:
    """A table with rows outside the slices it is stored for is a `ValueError`."""
    with pytest.raises(ValueError, match="no bucket slice"):
        keep(cache, [1], rows_of_seed(2, 1))


def test_two_slices_of_one_bucket_are_refused(cache: AnswerCache) -> None:
    """Storing two slices with the same bucket start at once is a `ValueError`."""
    with pytest.raises(ValueError, match="two bucket slices"):
        keep(cache, [1, 1], rows_of_seed(1, 1))


def test_a_field_that_a_newer_service_sends_is_null_where_it_was_not_sent(cache: AnswerCache) -> None:
    """A field added by a newer service is null in rows that were stored before."""
    keep(cache, [1], rows(1, ("US", 1)))
    keep(cache, [2], rows(2, ("US", 2), fresh=pa.array([7], pa.int64())))
    result = find(cache, [1, 2])
    assert result is not None
    assert result["fresh"].to_pylist() == [None, 7]


def test_a_field_that_was_all_null_takes_the_type_of_the_others(cache: AnswerCache) -> None:
    """A column stored as all null takes the type that later rows have."""
    keep(cache, [1], rows(1, ("US", 1), more=pa.nulls(1)))
    keep(cache, [2], rows(2, ("US", 2), more=pa.array([7.5])))
    result = find(cache, [1, 2])
    assert result is not None
    assert result["more"].to_pylist() == [None, 7.5]


def test_rows_of_an_incompatible_type_are_requested_again(cache: AnswerCache, clock: Clock) -> None:
    """If two stored types cannot be combined, only the newest rows are found."""
    keep(cache, [1], rows(1, ("US", 1), more=pa.array([7])))
    clock.advance(1)
    keep(cache, [2], rows(2, ("US", 2), more=pa.array(["seven"])))
    result = cache.find(ASKED, day_slices([1, 2]), available=LATER, fresh_s=0)
    assert result.slices == {day_slice(2)}
    assert result.table is not None
    assert result.table["more"].to_pylist() == ["seven"]


# Expiry


def test_a_settled_bucket_is_found_for_ever(cache: AnswerCache, clock: Clock) -> None:
    """A bucket that ended two days before the available end never expires."""
    keep(cache, [1], rows_of_seed(1, 1), available(4))
    clock.advance(1e9)
    assert found_days(cache, [1], available(900)) == [1]


def test_an_unsettled_bucket_does_not_become_settled_by_itself(cache: AnswerCache, clock: Clock) -> None:
    """A bucket requested before it was settled is requested again afterwards."""
    keep(cache, [1], rows_of_seed(1, 1), available(3.99))
    clock.advance(1e9)
    assert found_days(cache, [1], available(900), fresh_s=1e12) == []


def test_the_days_until_a_bucket_is_settled_can_be_chosen(make: Callable[..., AnswerCache]) -> None:
    """With `settle_days=5` a bucket is settled five days before the available end."""
    cache = make(settle_days=5)
    keep(cache, [1, 2], pa.concat_tables([rows_of_seed(1, 1), rows_of_seed(2, 1)]), available(7))
    assert found_days(cache, [1, 2], available(8)) == [1]


def test_an_unsettled_bucket_is_found_until_it_is_too_old(cache: AnswerCache, clock: Clock) -> None:
    """An unsettled bucket is found while it is younger than `fresh_s`, 60 s here."""
    keep(cache, [1], rows_of_seed(1, 1), available(2))
    clock.advance(59)
    assert found_days(cache, [1], available(2), fresh_s=60) == [1]
    clock.advance(1)
    assert found_days(cache, [1], available(2), fresh_s=60) == []


def test_an_unsettled_bucket_is_stale_once_more_is_available(cache: AnswerCache) -> None:
    """An unsettled bucket is stale once the available interval has grown."""
    keep(cache, [1], rows_of_seed(1, 1), available(2))
    assert found_days(cache, [1], available(2.1), fresh_s=60) == []


def test_an_unsettled_bucket_is_never_found_with_fresh_s_0(cache: AnswerCache) -> None:
    """With `fresh_s=0` no unsettled bucket is found."""
    keep(cache, [1], rows_of_seed(1, 1), available(2))
    assert found_days(cache, [1], available(2), fresh_s=0) == []


def test_a_clock_set_back_makes_nothing_fresh(cache: AnswerCache, clock: Clock) -> None:
    """Rows stored in the future, by a clock set back since, are not fresh."""
    keep(cache, [1], rows_of_seed(1, 1), available(2))
    clock.advance(-10)
    assert found_days(cache, [1], available(2), fresh_s=60) == []


def test_a_bucket_requested_again_after_it_settled_stays(cache: AnswerCache) -> None:
    """A bucket requested again after it settled replaces the old rows and never expires."""
    keep(cache, [1], rows_of_seed(1, 1), available(2))
    keep(cache, [1], rows_of_seed(1, 2), available(9))
    assert find(cache, [1], available(900)) == rows_of_seed(1, 2)


# Many answers


def test_a_hundred_days_stored_one_by_one_are_found_together(cache: AnswerCache, clock: Clock) -> None:
    """In the order requested, whenever each was stored."""
    for day in range(100):
        clock.advance(86_400)
        keep(cache, [day], rows_of_seed(day, 1))
    assert find(cache, range(100)) == pa.concat_tables([rows_of_seed(day, 1) for day in range(100)])
    assert (cache.info().queries, cache.info().buckets) == (1, 100)


def test_storing_other_days_leaves_the_unsettled_unsettled_and_the_fresh_fresh(cache: AnswerCache) -> None:
    """Each bucket has the times of its own request."""
    for day in range(30):
        keep(cache, [day], rows_of_seed(day, 1), available(29))
    assert found_days(cache, range(30), available(29), fresh_s=60) == [*range(30)]
    assert found_days(cache, range(30), available(30), fresh_s=60) == [*range(27)]


def test_unsettled_buckets_unused_for_a_season_are_dropped(cache: AnswerCache, clock: Clock) -> None:
    """The next answer of their query drops them after 90 days, and keeps settled ones."""
    keep(cache, [500], rows_of_seed(500, 1), available(500))
    keep(cache, [501], rows_of_seed(501, 1), available(900))
    clock.advance(91 * 86_400)
    keep(cache, [1], rows_of_seed(1, 1))
    assert cache.info().buckets == 2
    assert found_days(cache, [1, 501]) == [1, 501]


def test_each_bucket_keeps_its_types(cache: AnswerCache) -> None:
    """A day whose column was whole numbers is found as such beside days of fractions."""
    tables = [
        rows(day, ("US", day), more=pa.array([day], pa.int64() if day % 2 else pa.float64())) for day in range(40)
    ]
    for day, table in enumerate(tables):
        keep(cache, [day], table)
    assert [find(cache, [day]) for day in range(40)] == tables


def test_days_without_rows_add_no_column_to_others(cache: AnswerCache) -> None:
    """An empty answer has the columns that its service named, which may be fewer."""
    bare = pa.table({"timestamp": pa.array([], STAMP)})
    for day in range(60):
        keep(cache, [day], rows_of_seed(day, 1) if day % 2 else bare)
    assert found_days(cache, range(60)) == [*range(60)]
    assert find(cache, range(60)) == pa.concat_tables([rows_of_seed(day, 1) for day in range(1, 60, 2)])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for many owners: one folder each would take most of the time."""
    return tmp_path_factory.mktemp("many")


Step = tuple[str, list[int], list[int], bool]
"""A verb, days, the number of rows of each, and whether they have one more column."""


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["keep", "keep", "find", "again"]),
            st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
            st.lists(st.integers(0, 3), min_size=4, max_size=4),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_a_lookup_finds_exactly_what_was_stored_last(many: Path, steps: list[Step]) -> None:
    """After any sequence of stores and reopenings a lookup returns the last rows stored."""
    owner = os.urandom(8).hex()
    cache, number = AnswerCache(many, owner=owner), 0
    stored: dict[int, pa.Table] = {}
    for verb, days, sizes, is_wide in steps:
        if verb == "again":
            cache.close()
            cache = AnswerCache(many, owner=owner)
        elif verb == "keep":
            new_rows = {}
            for day, size in zip(days, sizes, strict=False):
                number += 1
                more = {"more": pa.array([f"{number}"] * size, pa.string())} if is_wide else {}
                new_rows[day] = rows(day, *((f"C{place}", float(number)) for place in range(size)), **more)
            keep(cache, days, pa.concat_tables([new_rows[day] for day in days]))
            stored |= new_rows
        expected = [stored[day] for day in days if day in stored]
        result = cache.find(ASKED, day_slices(days), available=LATER, fresh_s=0)
        assert result.slices == {day_slice(day) for day in days if day in stored}
        expected_rows = [row for table in expected for row in table.to_pylist()]
        found_rows = result.table.to_pylist() if result.table is not None else []
        assert [row | {"more": row.get("more")} for row in found_rows] == [
            row | {"more": row.get("more")} for row in expected_rows
        ]
    assert cache.info().off is None
    cache.close()


# The bound


def asked(metric: str) -> CacheKey:
    """Return the key of a query of *metric*."""
    return msgspec.structs.replace(ASKED, metric=metric)


def noise(day: int, count: int) -> pa.Table:
    """Return *count* rows that cannot be compressed."""
    return rows(day, *((os.urandom(20).hex(), 1) for _ in range(count)))


def test_the_queries_used_least_recently_are_removed_first(make: Callable[..., AnswerCache], clock: Clock) -> None:
    """Over `max_bytes`, whole queries go, in the order of their last use."""
    whole = make()
    for metric in ("a", "b", "c"):
        clock.advance(100)
        keep(whole, [1], noise(1, 2000), key=asked(metric))
    clock.advance(100)
    find(whole, [1], key=asked("a"))
    clock.advance(100)
    small = make(max_bytes=whole.info().bytes + 20_000)
    keep(small, [1], noise(1, 2000), key=asked("d"))
    assert [metric for metric in "abcd" if found_days(small, [1], key=asked(metric))] == ["a", "c", "d"]


@pytest.mark.wide
def test_the_file_stays_below_max_bytes(make: Callable[..., AnswerCache], clock: Clock) -> None:
    """Sixty answers of 60 kB into 1 MiB; the one that is used between stays."""
    cache = make(max_bytes=1 << 20)
    for number in range(60):
        clock.advance(100)
        keep(cache, [1], noise(1, 2000), key=asked(f"m{number}"))
        assert found_days(cache, [1], key=asked("m0")) == [1]
    assert file_of(cache).stat().st_size <= cache.info().max_bytes
    assert 5 < cache.info().queries < 30


def test_a_query_that_outgrows_max_bytes_loses_its_earlier_answers(
    make: Callable[..., AnswerCache], clock: Clock
) -> None:
    """Its newest answer stays, and so does the bound."""
    cache = make(max_bytes=500_000)
    for day in range(20):
        clock.advance(100)
        keep(cache, [day], noise(day, 2000))
        assert found_days(cache, [day]) == [day]
        assert cache.info().bytes <= 500_000


def test_max_bytes_bounds_all_owners_together(make: Callable[..., AnswerCache], clock: Clock) -> None:
    """`max_bytes` bounds the file: rows of one owner can displace those of another."""
    ann = make()
    keep(ann, [1], noise(1, 2000))
    clock.advance(100)
    bob = make(owner="bob", max_bytes=ann.info().bytes + 20_000)
    keep(bob, [1], noise(1, 2000))
    assert (found_days(ann, [1]), found_days(bob, [1])) == ([], [1])
    assert bob.info().bytes <= bob.info().max_bytes


def test_an_answer_over_max_bytes_is_not_stored_and_removes_nothing(make: Callable[..., AnswerCache]) -> None:
    """An answer larger than `max_bytes` is not stored, and no other rows are removed for it."""
    cache = make(max_bytes=100_000)
    keep(cache, [1], rows_of_seed(1, 1))
    keep(cache, [2], noise(2, 6000))
    assert found_days(cache, [1, 2]) == [1]
    assert "max_bytes" in (cache.info().store_error or "")


def test_rows_replaced_by_an_answer_over_max_bytes_are_dropped(make: Callable[..., AnswerCache]) -> None:
    """If the newer answer is too large to store, the outdated rows are not found either."""
    cache = make(max_bytes=100_000)
    keep(cache, [2], rows_of_seed(2, 1))
    keep(cache, [2], noise(2, 6000))
    assert found_days(cache, [2]) == []
    assert cache.info().buckets == 0


# The folder


def test_making_a_cache_touches_nothing(cache: AnswerCache) -> None:
    """Constructing a cache creates no folder."""
    assert not cache.folder.exists()


def test_only_the_user_may_read_the_folder(cache: AnswerCache) -> None:
    """Files have mode 0600 and folders 0700."""
    keep(cache, [1], rows_of_seed(1, 1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (cache.folder / "answers-2").iterdir()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cache.folder, cache.folder / "answers-2")} == {0o700}


def test_a_folder_that_others_could_read_is_closed_to_them(cache: AnswerCache) -> None:
    """An existing folder with mode 0755 is changed to 0700."""
    (cache.folder / "answers-2").mkdir(parents=True, mode=0o755)
    keep(cache, [1], rows_of_seed(1, 1))
    assert stat.S_IMODE((cache.folder / "answers-2").stat().st_mode) == 0o700


def test_other_files_in_the_folder_are_left_alone(cache: AnswerCache) -> None:
    """Clearing everything removes only files that the cache wrote."""
    cache.folder.mkdir()
    (cache.folder / "thesis.parquet").write_text("mine")
    keep(cache, [1], rows_of_seed(1, 1))
    (cache.folder / "answers-2" / "notes.txt").write_text("mine too")
    cache.clear(everything=True)
    assert (cache.folder / "thesis.parquet").exists()
    assert (cache.folder / "answers-2" / "notes.txt").exists()


def test_the_environment_names_the_folder(tmp_path: Path) -> None:
    """`GAMELENS_CACHE_DIR` names the folder, else it is the user's cache folder."""
    assert cache_folder({"GAMELENS_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert cache_folder({}).name == "gamelens"


def test_info_counts(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """`info` counts the owner's queries, buckets, hits and misses, and all bytes on disk."""
    keep(cache, [1, 2], pa.concat_tables([rows_of_seed(1, 1), rows_of_seed(2, 1)]))
    keep(make(owner="bob"), [1], rows_of_seed(1, 1))
    find(cache, [1, 2, 3])
    cache.fresh_slices(ASKED, day_slices([1]), available=LATER, fresh_s=0)
    info = cache.info()
    assert (info.queries, info.buckets, info.hits, info.misses) == (1, 2, 2, 1)
    assert info.bytes <= file_of(cache).stat().st_size


def test_info_prints_as_a_sentence(cache: AnswerCache) -> None:
    """The repr of `info` states the folder, its contents, its size and the share found."""
    keep(cache, [1], rows_of_seed(1, 1))
    find(cache, [1, 2])
    printed = repr(cache.info())
    assert printed.startswith(f"Cache in {cache.folder}: 1 queries, 1 buckets, 0.0 of 512 MiB")
    assert printed.endswith("1 of 2 buckets found")


def test_clear_removes_only_the_owners_rows(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """`clear` removes the owner's rows and restatements and leaves those of others."""
    other = make(owner="bob")
    for seed in (1, 2):
        keep(cache, [1], rows_of_seed(1, seed))
        keep(other, [1], rows_of_seed(1, seed))
    cache.clear()
    assert (found_days(cache, [1]), found_days(other, [1])) == ([], [1])
    assert (len(cache.restatements()), len(other.restatements())) == (0, 1)


def test_clear_everything_removes_all(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """`clear(everything=True)` removes the rows of all owners, and the file shrinks."""
    other = make(owner="bob")
    keep(cache, [1], rows_of_seed(1, 1))
    keep(other, [1], rows_of_seed(1, 1))
    cache.clear(everything=True)
    assert (found_days(cache, [1]), found_days(other, [1]), other.info().queries) == ([], [], 0)


def test_clear_everything_removes_the_files_of_earlier_versions(cache: AnswerCache) -> None:
    """Those that the cache wrote, and nothing else in their folder."""
    older = cache.folder / "answers"
    older.mkdir(parents=True)
    names = ["index.sqlite", "index.sqlite-wal", "opening.lock", f"{'0' * 32}-00000000.parquet"]
    for name in (*names, "thesis.parquet"):
        (older / name).touch()
    cache.clear(everything=True)
    assert [path.name for path in older.iterdir()] == ["thesis.parquet"]


def test_a_closed_cache_finds_and_stores_nothing(cache: AnswerCache) -> None:
    """A closed cache finds nothing, stores nothing, and `info` says that it is closed."""
    keep(cache, [1], rows_of_seed(1, 1))
    cache.close()
    assert keep(cache, [1], rows_of_seed(1, 2)) == []
    assert find(cache, [1]) is None
    assert cache.info().off == "closed"


def test_a_closed_cache_can_be_cleared_and_stays_closed(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    """`clear` works on a closed cache and does not reopen it."""
    keep(cache, [1], rows_of_seed(1, 1))
    cache.close()
    cache.clear()
    assert cache.info().off == "closed"
    assert found_days(make(), [1]) == []


def test_threads_share_a_cache(cache: AnswerCache) -> None:
    """Eight threads may store and find rows in one cache at the same time."""

    def use(day: int) -> bool:
        keep(cache, [day], rows_of_seed(day, 1))
        return bool(find(cache, [day]) == rows_of_seed(day, 1))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(64)))
    assert find(cache, range(64)) == pa.concat_tables([rows_of_seed(day, 1) for day in range(64)])
    assert (cache.info().hits, cache.info().off) == (128, None)


def test_a_cache_in_a_folder_with_an_odd_name(clock: Clock) -> None:
    """A folder name with spaces, quotes, %, ? and # works."""
    with tempfile.TemporaryDirectory(prefix="wéird 'name' %20 ?x#") as folder:
        cache = AnswerCache(Path(folder), owner="ann", now=clock)
        keep(cache, [1], rows_of_seed(1, 1))
        assert find(cache, [1]) == rows_of_seed(1, 1)
        cache.close()
