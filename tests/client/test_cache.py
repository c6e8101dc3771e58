"""The cache of answered buckets (analyst-api, promise 9): what is found, for how long, and what it is bounded by."""

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

from conftest import examples
from gamelens.client.cache.answer_cache import AnswerCache, CacheKey, cache_folder
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.wire.intervals import Interval
from support.cache_writer import (
    ASKED,
    BEGAN_S,
    DAY,
    LATER,
    STAMP,
    START,
    Clock,
    available,
    find,
    keep,
    of_seed,
    rows,
    there,
    unit,
    units,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., AnswerCache]]:
    made: list[AnswerCache] = []

    def make(**options: Any) -> AnswerCache:
        made.append(AnswerCache(tmp_path / "cache", **({"owner": "ann", "now": clock} | options)))
        return made[-1]

    yield make
    for cache in made:
        cache.close()


@pytest.fixture
def cache(make: Callable[..., AnswerCache]) -> AnswerCache:
    return make()


def parts(cache: AnswerCache) -> list[Path]:
    return sorted((cache.folder / "answers").glob("*.parquet*"))


# What is found


def test_what_was_kept_is_found_as_it_was(cache: AnswerCache) -> None:
    table = rows(1, ("US", 10.5), (None, 2), ("NA", 3), note=["{}", None, "[1]"])
    keep(cache, [1], table)
    found = find(cache, [1])
    assert found is not None
    assert found.equals(table)
    assert found.schema.equals(table.schema, check_metadata=True)


def test_nothing_is_found_where_nothing_was_kept(cache: AnswerCache) -> None:
    found = cache.find(ASKED, units([1, 2]), available=LATER, fresh_s=0)
    assert (found.table, found.units) == (None, frozenset())


def test_nothing_asked_is_nothing_found(cache: AnswerCache) -> None:
    assert find(cache, []) is None


def test_days_that_are_there_are_found_among_those_that_are_not(cache: AnswerCache) -> None:
    keep(cache, [1, 3], pa.concat_tables([of_seed(1, 1), of_seed(3, 1)]))
    assert there(cache, range(5)) == [1, 3]


def test_rows_come_in_the_order_of_the_units_asked_for(cache: AnswerCache) -> None:
    for days in ([4, 5], [1], [2, 3]):
        keep(cache, days, pa.concat_tables([of_seed(day, 1) for day in days]))
    assert find(cache, [3, 1, 5, 2]) == pa.concat_tables([of_seed(day, 1) for day in (3, 1, 5, 2)])


def test_rows_of_one_bucket_keep_their_order_however_buckets_are_mixed(cache: AnswerCache) -> None:
    one, two = rows(1, ("b", 3), ("a", 2), ("c", 9)), rows(2, ("z", 1), ("b", 7), ("a", 8))
    mixed = pa.concat_tables([two.slice(0, 1), one.slice(0, 2), two.slice(1, 1), one.slice(2), two.slice(2)])
    keep(cache, [1, 2], mixed)
    assert find(cache, [1, 2]) == pa.concat_tables([one, two])


def test_a_bucket_without_rows_is_there_too(cache: AnswerCache) -> None:
    keep(cache, [1, 2, 3], of_seed(2, 1))
    assert there(cache, [1, 2, 3]) == [1, 2, 3]
    assert find(cache, [1, 2, 3]) == of_seed(2, 1)


def test_buckets_without_rows_alone_have_the_columns(cache: AnswerCache) -> None:
    keep(cache, [1, 2], rows(1))
    assert find(cache, [1, 2]) == rows(1)


def test_a_unit_asked_for_twice_is_answered_once(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    assert find(cache, [1, 1]) == of_seed(1, 1)


def test_a_part_of_a_bucket_is_another_unit(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    morning = BucketSlice(Interval(START + DAY, START + DAY * 1.5), START + DAY)
    assert not cache.look(ASKED, [morning], available=LATER, fresh_s=9)


def test_the_same_interval_with_another_stamp_is_another_unit(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    stamped = BucketSlice(unit(1).interval, START)
    assert not cache.look(ASKED, [stamped], available=LATER, fresh_s=9)


@pytest.mark.parametrize(
    "other",
    [
        CacheKey("ilrd_revenue", ASKED.dimensions, ASKED.text, adds_up=True),
        CacheKey("revenue", ("platform",), ASKED.text, adds_up=True),
        CacheKey("revenue", ASKED.dimensions, '{"every":"week"}', adds_up=True),
    ],
)
def test_another_question_is_not_answered(cache: AnswerCache, other: CacheKey) -> None:
    keep(cache, [1], of_seed(1, 1))
    assert there(cache, [1], asked=other) == []


def test_what_another_owner_kept_is_never_seen(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    other = make(owner="bob")
    keep(cache, [1], of_seed(1, 1))
    keep(cache, [1], of_seed(1, 2))
    assert there(other, [1]) == []
    assert (other.restatements(), other.info().buckets) == ([], 0)


def test_another_cache_of_the_same_folder_finds_it(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    keep(cache, [1], of_seed(1, 1))
    cache.close()
    assert find(make(), [1]) == of_seed(1, 1)


def test_rows_of_no_unit_are_refused(cache: AnswerCache) -> None:
    with pytest.raises(ValueError, match="no unit"):
        keep(cache, [1], of_seed(2, 1))


def test_units_of_one_stamp_are_refused(cache: AnswerCache) -> None:
    with pytest.raises(ValueError, match="two units"):
        keep(cache, [1, 1], of_seed(1, 1))


def test_a_field_that_a_newer_service_sends_is_null_where_it_was_not_sent(cache: AnswerCache) -> None:
    keep(cache, [1], rows(1, ("US", 1)))
    keep(cache, [2], rows(2, ("US", 2), fresh=pa.array([7], pa.int64())))
    found = find(cache, [1, 2])
    assert found is not None
    assert found["fresh"].to_pylist() == [None, 7]


def test_a_field_that_was_all_null_takes_the_type_of_the_others(cache: AnswerCache) -> None:
    keep(cache, [1], rows(1, ("US", 1), more=pa.nulls(1)))
    keep(cache, [2], rows(2, ("US", 2), more=pa.array([7.5])))
    found = find(cache, [1, 2])
    assert found is not None
    assert found["more"].to_pylist() == [None, 7.5]


def test_what_cannot_stand_beside_the_newest_is_asked_again(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [1], rows(1, ("US", 1), more=pa.array([7])))
    clock.advance(1)
    keep(cache, [2], rows(2, ("US", 2), more=pa.array(["seven"])))
    found = cache.find(ASKED, units([1, 2]), available=LATER, fresh_s=0)
    assert found.units == {unit(2)}
    assert found.table is not None
    assert found.table["more"].to_pylist() == ["seven"]


def test_what_parquet_cannot_hold_is_not_kept_and_said(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    keep(cache, [1], rows(1, ("US", 1), more=pa.array([{}])))
    assert there(cache, [1]) == []
    assert "Parquet cannot hold it" in (cache.info().unkept or "")
    assert cache.info().off is None


# How long


def test_what_was_settled_when_it_was_asked_is_found_for_ever(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [1], of_seed(1, 1), available(4))
    clock.advance(1e9)
    assert there(cache, [1], available(900)) == [1]


def test_what_was_not_settled_when_it_was_asked_does_not_become_so(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [1], of_seed(1, 1), available(3.99))
    clock.advance(1e9)
    assert there(cache, [1], available(900), fresh_s=1e12) == []


def test_days_until_settled_can_be_said(make: Callable[..., AnswerCache]) -> None:
    cache = make(settle_days=5)
    keep(cache, [1, 2], pa.concat_tables([of_seed(1, 1), of_seed(2, 1)]), available(7))
    assert there(cache, [1, 2], available(8)) == [1]


def test_the_unsettled_is_found_for_a_while(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [1], of_seed(1, 1), available(2))
    clock.advance(59)
    assert there(cache, [1], available(2), fresh_s=60) == [1]
    clock.advance(1)
    assert there(cache, [1], available(2), fresh_s=60) == []


def test_the_unsettled_is_stale_when_more_is_available(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1), available(2))
    assert there(cache, [1], available(2.1), fresh_s=60) == []


def test_the_unsettled_is_never_found_where_nothing_may_be_old(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1), available(2))
    assert there(cache, [1], available(2), fresh_s=0) == []


def test_a_clock_set_back_makes_nothing_fresh(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [1], of_seed(1, 1), available(2))
    clock.advance(-10)
    assert there(cache, [1], available(2), fresh_s=60) == []


def test_what_is_asked_again_when_settled_stays(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1), available(2))
    keep(cache, [1], of_seed(1, 2), available(9))
    assert find(cache, [1], available(900)) == of_seed(1, 2)


# Many files


def test_after_many_days_there_are_few_files(cache: AnswerCache, clock: Clock) -> None:
    for day in range(100):
        clock.advance(86_400)
        keep(cache, [day], of_seed(day, 1))
        assert len(parts(cache)) <= 13
    assert len(parts(cache)) == cache.info().files
    assert find(cache, range(100)) == pa.concat_tables([of_seed(day, 1) for day in range(100)])


def test_merging_keeps_the_unsettled_unsettled_and_the_fresh_fresh(cache: AnswerCache) -> None:
    for day in range(30):
        keep(cache, [day], of_seed(day, 1), available(29))
    assert there(cache, range(30), available(29), fresh_s=60) == [*range(30)]
    assert there(cache, range(30), available(30), fresh_s=60) == [*range(27)]


def test_merging_leaves_behind_what_nobody_asked_for_in_a_season(cache: AnswerCache, clock: Clock) -> None:
    keep(cache, [500], of_seed(500, 1), available(500))
    keep(cache, [501], of_seed(501, 1), available(900))
    clock.advance(91 * 86_400)
    for day in range(12):
        keep(cache, [day], of_seed(day, 1))
    assert cache.info().buckets == 13
    assert there(cache, [501]) == [501]


def test_merging_changes_no_type(cache: AnswerCache) -> None:
    tables = [
        rows(day, ("US", day), more=pa.array([day], pa.int64() if day % 2 else pa.float64())) for day in range(40)
    ]
    for day, table in enumerate(tables):
        keep(cache, [day], table)
    assert [find(cache, [day]) for day in range(40)] == tables
    assert len(parts(cache)) <= 26


def test_days_without_rows_are_merged_with_the_others(cache: AnswerCache) -> None:
    bare = pa.table({"timestamp": pa.array([], STAMP)})
    for day in range(60):
        keep(cache, [day], of_seed(day, 1) if day % 2 else bare)
    assert len(parts(cache)) <= 13
    assert there(cache, range(60)) == [*range(60)]
    assert find(cache, range(60)) == pa.concat_tables([of_seed(day, 1) for day in range(1, 60, 2)])


def test_a_file_goes_with_its_last_unit(cache: AnswerCache) -> None:
    keep(cache, [1, 2], pa.concat_tables([of_seed(1, 1), of_seed(2, 1)]))
    (first,) = parts(cache)
    keep(cache, [1], of_seed(1, 2))
    assert first in parts(cache)
    keep(cache, [2], of_seed(2, 2))
    assert first not in parts(cache)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for many owners: to make one for each would take most of the time."""
    return tmp_path_factory.mktemp("many")


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
def test_what_is_found_is_exactly_what_was_last_kept(many: Path, steps: list[Any]) -> None:
    owner = os.urandom(8).hex()
    cache, kept, number = AnswerCache(many, owner=owner), {}, 0
    for verb, days, sizes, is_wide in steps:
        if verb == "again":
            cache.close()
            cache = AnswerCache(many, owner=owner)
        elif verb == "keep":
            made = {}
            for day, size in zip(days, sizes, strict=False):
                number += 1
                more = {"more": pa.array([f"{number}"] * size, pa.string())} if is_wide else {}
                made[day] = rows(day, *((f"C{place}", float(number)) for place in range(size)), **more)
            keep(cache, days, pa.concat_tables([made[day] for day in days]))
            kept |= made
        expected = [kept[day] for day in days if day in kept]
        found = cache.find(ASKED, units(days), available=LATER, fresh_s=0)
        assert found.units == {unit(day) for day in days if day in kept}
        wanted = [row for table in expected for row in table.to_pylist()]
        got = found.table.to_pylist() if found.table is not None else []
        assert [row | {"more": row.get("more")} for row in got] == [row | {"more": row.get("more")} for row in wanted]
    assert cache.info().off is None
    cache.close()


# How much


def test_the_least_recently_used_goes_first(make: Callable[..., AnswerCache], clock: Clock) -> None:
    whole = make()
    for metric in ("a", "b", "c"):
        clock.advance(100)
        keep(whole, [1], of_seed(1, 1), asked=msgspec.structs.replace(ASKED, metric=metric))
    clock.advance(100)
    find(whole, [1], asked=msgspec.structs.replace(ASKED, metric="a"))
    clock.advance(100)
    small = make(max_bytes=whole.info().bytes + 10)
    keep(small, [1], of_seed(1, 1), asked=msgspec.structs.replace(ASKED, metric="d"))
    left = [m for m in "abcd" if there(small, [1], asked=msgspec.structs.replace(ASKED, metric=m))]
    assert left == ["a", "c", "d"]
    assert len(parts(small)) == 3


def test_the_bound_is_that_of_all_owners_together(make: Callable[..., AnswerCache], clock: Clock) -> None:
    ann = make()
    keep(ann, [1], of_seed(1, 1))
    clock.advance(100)
    bob = make(owner="bob", max_bytes=ann.info().bytes + 10)
    keep(bob, [1], of_seed(1, 1))
    assert (there(ann, [1]), there(bob, [1])) == ([], [1])
    assert sum(path.stat().st_size for path in parts(bob)) <= bob.info().bytes <= bob.info().max_bytes


def test_what_is_larger_than_the_bound_is_not_kept_and_pushes_nothing_out(make: Callable[..., AnswerCache]) -> None:
    cache = make(max_bytes=6000)
    keep(cache, [1], of_seed(1, 1))
    keep(cache, [2], rows(2, *((os.urandom(20).hex(), 1) for _ in range(1000))))
    assert there(cache, [1, 2]) == [1]
    assert "max_bytes" in (cache.info().unkept or "")


def test_what_is_not_kept_takes_no_others_with_it(make: Callable[..., AnswerCache]) -> None:
    cache = make(max_bytes=60_000)
    for day in range(12):
        keep(cache, [day], of_seed(day, 1))
    keep(cache, [12], rows(12, *((os.urandom(20).hex(), 1) for _ in range(3000))))
    assert "max_bytes" in (cache.info().unkept or "")
    assert there(cache, range(13)) == [*range(12)]
    assert find(cache, range(12)) == pa.concat_tables([of_seed(day, 1) for day in range(12)])


def test_what_was_replaced_by_what_is_too_large_is_not_found_any_more(make: Callable[..., AnswerCache]) -> None:
    cache = make(max_bytes=6000)
    keep(cache, [2], of_seed(2, 1))
    keep(cache, [2], rows(2, *((os.urandom(20).hex(), 1) for _ in range(1000))))
    assert there(cache, [2]) == []
    assert parts(cache) == []


# The folder


def test_making_a_cache_touches_nothing(cache: AnswerCache) -> None:
    assert not cache.folder.exists()


def test_only_the_owner_may_look(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (cache.folder / "answers").iterdir()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cache.folder, cache.folder / "answers")} == {0o700}


def test_a_folder_that_others_could_read_is_closed_to_them(cache: AnswerCache) -> None:
    (cache.folder / "answers").mkdir(parents=True, mode=0o755)
    keep(cache, [1], of_seed(1, 1))
    assert stat.S_IMODE((cache.folder / "answers").stat().st_mode) == 0o700


def test_what_else_lies_in_the_folder_is_left_alone(cache: AnswerCache) -> None:
    cache.folder.mkdir()
    (cache.folder / "thesis.parquet").write_text("mine")
    keep(cache, [1], of_seed(1, 1))
    (cache.folder / "answers" / "notes.txt").write_text("mine too")
    cache.clear(everything=True)
    assert (cache.folder / "thesis.parquet").exists()
    assert (cache.folder / "answers" / "notes.txt").exists()


def test_the_environment_says_where(tmp_path: Path) -> None:
    assert cache_folder({"GAMELENS_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert cache_folder({}).name == "gamelens"


def test_info_counts(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    keep(cache, [1, 2], pa.concat_tables([of_seed(1, 1), of_seed(2, 1)]))
    keep(make(owner="bob"), [1], of_seed(1, 1))
    find(cache, [1, 2, 3])
    cache.look(ASKED, units([1]), available=LATER, fresh_s=0)
    info = cache.info()
    assert (info.questions, info.buckets, info.files, info.hits, info.misses) == (1, 2, 1, 2, 1)
    assert info.bytes > sum(path.stat().st_size for path in parts(cache))


def test_info_prints_as_a_sentence(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    find(cache, [1, 2])
    printed = repr(cache.info())
    assert printed.startswith(f"Cache in {cache.folder}: 1 questions, 1 buckets in 1 files, 0.0 of 512 MiB")
    assert printed.endswith("1 of 2 buckets found")


def test_clear_removes_what_is_the_owners(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    other = make(owner="bob")
    for seed in (1, 2):
        keep(cache, [1], of_seed(1, seed))
        keep(other, [1], of_seed(1, seed))
    cache.clear()
    assert (there(cache, [1]), there(other, [1])) == ([], [1])
    assert (len(cache.restatements()), len(other.restatements())) == (0, 1)
    assert len(parts(cache)) == 1


def test_clear_everything_removes_all(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    other = make(owner="bob")
    keep(cache, [1], of_seed(1, 1))
    keep(other, [1], of_seed(1, 1))
    cache.clear(everything=True)
    assert (there(cache, [1]), there(other, [1]), parts(cache)) == ([], [], [])


def test_a_closed_cache_finds_and_keeps_nothing(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    cache.close()
    assert keep(cache, [1], of_seed(1, 2)) == []
    assert find(cache, [1]) is None
    assert cache.info().off == "closed"


def test_a_closed_cache_can_be_cleared_and_stays_closed(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    keep(cache, [1], of_seed(1, 1))
    cache.close()
    cache.clear()
    assert cache.info().off == "closed"
    assert there(make(), [1]) == []


def test_looking_reads_no_file(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    parts(cache)[0].unlink()
    assert cache.look(ASKED, units([1, 2]), available=LATER, fresh_s=0) == {unit(1)}


def test_old_orphans_are_swept_when_a_cache_is_opened(cache: AnswerCache, make: Callable[..., AnswerCache]) -> None:
    keep(cache, [1], of_seed(1, 1))
    (kept,) = parts(cache)
    files = [f"{'0' * 31}{number}-00000000.parquet" for number in range(4)]
    names = [*files[:2], *(f".{file}.0123abcd.part" for file in files[2:])]
    for name, age_s in zip(names, (3601, 3599, 3601, 3599), strict=True):
        path = kept.with_name(name)
        path.touch()
        os.utime(path, (BEGAN_S - age_s, BEGAN_S - age_s))
    assert there(make(), [1]) == [1]
    assert [path.name for path in parts(cache)] == sorted([names[1], names[3], kept.name])


def test_threads_share_a_cache(cache: AnswerCache) -> None:
    def use(day: int) -> bool:
        keep(cache, [day], of_seed(day, 1))
        return find(cache, [day]) == of_seed(day, 1)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(64)))
    assert find(cache, range(64)) == pa.concat_tables([of_seed(day, 1) for day in range(64)])
    assert (cache.info().hits, cache.info().off) == (128, None)


def test_a_cache_in_a_folder_with_an_odd_name(clock: Clock) -> None:
    with tempfile.TemporaryDirectory(prefix="wéird 'name' %20 ?x#") as folder:
        cache = AnswerCache(Path(folder), owner="ann", now=clock)
        keep(cache, [1], of_seed(1, 1))
        assert find(cache, [1]) == of_seed(1, 1)
        cache.close()
