"""The frame that a query of the client must give, from the raw events alone.

`Expected` works out rows by brute force (`WideTruth`, `alias_rows`), chooses the largest, counts again the events that
`top` leaves out, and puts several metrics side by side. Of the client it knows no more than a user does: the words of a
query, and the columns that the catalog promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import pandas as pd

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, TITLES, CohortShare, Metric
from gamelens.errors import BadQuery, GamelensError, NotAdditive
from gamelens.wire.intervals import Granularity, Interval
from support.alias_truth import alias_rows
from support.brute_force import Row, buckets
from support.random_worlds import GAMES
from support.watched_service import WideTruth, is_close, rank

AVAILABLE: Final = Interval.parse("2026-09-30/2026-11-20T10:00Z")
"""What is available of the random population."""
LAST_MIDNIGHT: Final = datetime(2026, 11, 20, tzinfo=UTC)
RANGES: Final[dict[Any, str]] = {
    "2026-09-30/2026-11-20": "2026-09-30/2026-11-20",
    "2026-10-20/2026-11-20": "2026-10-20/2026-11-20",
    "2026-10-25T12:00Z/2026-11-19T18:30Z": "2026-10-25T12:00Z/2026-11-19T18:30Z",
    "2026-11-05T12:00Z/2026-11-20T10:00Z": "2026-11-05T12:00Z/2026-11-20T10:00Z",
    "2026-10-08/2026-10-10": "2026-10-08/2026-10-10",
    "last 3 complete weeks": "2026-10-26/2026-11-16",
    "October 2026": "2026-10-01/2026-11-01",
    ("2026-11-01", "2026-11-10"): "2026-11-01/2026-11-11",
    "2026-11-10/2026-12-01": "2026-11-10/2026-11-20T10:00Z",
}
"""Time ranges as an analyst writes them, and what of them is available."""
TITLE_OF: Final = {"1001": "Tile Saga", "1002": "Tile Empire", "2001": "Ember", "s1": "North", "s2": "South"}
TITLED: Final = {title: id_ for id_, title in TITLE_OF.items()}
"""Ids by the titles that may stand for them."""
IDS: Final = {title: name for name, title in TITLES.items()}
OTHER: Final = "(other)"

Key = tuple[Any, ...]
"""Timestamp and values of the dimensions."""
Table = dict[Key, Row]
"""Fields of the rows by key, under the names of their columns."""
Gaps = Sequence[Mapping[str, Any]]


class Expected:
    """What a query must give.

    Args:
        truth: the events.
        query: the arguments of `Client.query`, or with `days` of `Client.retention`; *over* is one of `RANGES`.
        max_days: that of the client.

    Attributes:
        filled: the rows of each metric that are 0 because it has none, once `rows` were worked out.
    """

    def __init__(self, truth: WideTruth, query: Mapping[str, Any], max_days: int | None = None) -> None:
        self.truth = truth
        self.query = query
        self.max_days = max_days
        self.filled: dict[str, int] = {}
        self.ages: tuple[int, ...] = tuple(query.get("days", ()))
        self.metrics = () if self.ages else _names(query["metric"])
        self.by = _names(query.get("by"))
        self.names = tuple(IDS.get(name, name) for name in self.by)
        self.titled = [IDS[name] for name in self.by if name in IDS]
        every = [query.get("every"), *(ALIASES[name].every for name in self.metrics if name in ALIASES), "day"]
        self.every: Granularity = next(filter(None, every))
        self.over = Interval.parse(RANGES[query["over"]])
        top = query.get("top")
        self.top: int | None = next(iter(top.values())) if isinstance(top, dict) else top
        ranked = [IDS.get(name, name) for name in top] if isinstance(top, dict) else [*self.names]
        self.ranked = tuple(ranked)
        self.within = tuple(name for name in self.names if name not in ranked)
        self.narrowed: dict[str, Any] = {"where": query.get("where")}
        for field in ("games", "studios"):
            if query.get(field) is not None:
                self.narrowed[field] = [TITLED.get(name, name) for name in _names(query[field])]

    # What is refused

    @cached_property
    def refusal(self) -> type[GamelensError] | None:
        """The error that refuses the query before a request for rows, or None (Wire 4.14, Adding up)."""
        is_of_cohorts = any(isinstance(_metric(name), CohortShare) for name in self.metrics)
        if is_of_cohorts and any(self.query.get(field) for field in ("top", "check", "since_days_ago")):
            return BadQuery
        return next(filter(None, map(self._refused, self.metrics)), None)

    def _refused(self, name: str) -> type[GamelensError] | None:
        metric, needed = _metric(name), _sources(name)
        if any(METRICS[source].kinds == "retention" for source, _ in needed):
            if any(DIMENSIONS[it].level in ("ad", "ilrd") for it in self.names if it in DIMENSIONS):
                return BadQuery
            if isinstance(metric, CohortShare):
                return None
            if self.every != "day" or "since_days_ago" not in self.query:
                return BadQuery
            if "game_id" not in self.names:
                return NotAdditive
        if any(METRICS[it].adds != "everywhere" and self._is_cut(every or self.every) for it, every in needed):
            return NotAdditive
        is_total_needed = bool(self.by) and bool(self.query.get("other") or self.query.get("check"))
        if is_total_needed and not self.has_total(name) and not self._has_rest(metric):
            return NotAdditive
        return None

    def _is_cut(self, every: Granularity) -> bool:
        """Return whether a bucket takes more than one request."""
        if every == "day" or self.max_days is None:
            return False
        return any(end - start > timedelta(days=self.max_days) for start, end in _spans(self.over, every))

    def has_total(self, name: str) -> bool:
        """Return whether the rows of a metric add up to its answer without the ranked dimensions."""
        metric = _metric(name)
        can_add = metric.kinds == "plain" and all(field.combines is not None for field in metric.fields)
        return can_add and (metric.adds == "everywhere" or {"game_id", "studio_id"}.issuperset(self.ranked))

    def _has_rest(self, metric: Metric) -> bool:
        """Return whether one request for one bucket, or one for each game or studio, answers what `top` leaves out."""
        is_one = len(self.ranked) == 1 and self.ranked[0] != "studio_id" and len(_stamps(self.over, self.every)) == 1
        in_game = {"game_id", "studio_id"}.issuperset(self.within)
        kinds = {METRICS[source].kinds for source, _ in _sources(metric.name)}
        is_possible = kinds == {"plain"} or ("retention" not in kinds and self.ranked[0] != "game_id")
        return bool(self.query.get("other")) and is_one and in_game and is_possible

    # What the frame has

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the frame, in order."""
        shown = [column for name in self.by for column in ([IDS[name], name] if name in IDS else [name])]
        if self.ages:
            return ["timestamp", "age", *shown, "retention", "installs", "returned"]
        fields = [column for name in self.metrics for column in self.fields(name)]
        return ["timestamp", *shown, *dict.fromkeys(fields)]

    def fields(self, name: str) -> list[str]:
        """Return the columns of a metric in the frame."""
        return list(_metric(name).shown_columns(all_fields=self.query.get("fields") == "all").values())

    @property
    def _keys(self) -> tuple[str, ...]:
        """The columns whose values no two rows share."""
        return ("timestamp", *(("age",) if self.ages else ()), *self.names)

    @cached_property
    def everything(self) -> dict[str, Table]:
        """All rows of each metric, without a `top`."""
        return {name: self._table(name, self.names, self.truth) for name in self.metrics}

    @cached_property
    def shown(self) -> dict[str, Table]:
        """The rows of each metric that `top` keeps, with the rows `(other)`."""
        return {name: self._with_top(name, table) for name, table in self.everything.items()}

    @cached_property
    def rows(self) -> Table:
        """The rows of the frame. Where several metrics stand side by side, sums that have no row are 0."""
        if self.ages:
            return {tuple(row.pop(key) for key in self._keys): row for row in self._cohorts(self.ages, self.names)}
        tables, is_alone = self.shown, len(self.metrics) == 1
        keys = dict.fromkeys(key for table in tables.values() for key in table)
        is_of_rows = not all(isinstance(_metric(name), CohortShare) for name in self.metrics)
        if not is_alone and self.top is None and is_of_rows:
            values = dict.fromkeys(key[1:] for key in keys) if self.names else {(): None}
            keys |= dict.fromkeys((start, *rest) for start in _stamps(self.over, self.every) for rest in values)
        result: Table = {}
        for key in keys:
            row: Row = {}
            is_known = False
            for name, table in tables.items():
                sums = [] if is_alone or self._may_hide(name, key[0]) else _sums(name)
                found = table.get(key)
                is_known |= found is not None or bool(sums)
                if found is None and sums:
                    self.filled[name] = self.filled.get(name, 0) + 1
                for column in self.fields(name):
                    value = found[column] if found is not None else 0 if column in sums else None
                    row[column] = row[column] if row.get(column) is not None else value
            if is_known:
                result[key] = row
        return result

    def _may_hide(self, name: str, start: datetime) -> bool:
        """Return whether a metric may have a value in a bucket without a row there."""
        table = self.shown[name]
        if isinstance(_metric(name), CohortShare):
            return any(row[name] is None and key[0] == start for key, row in table.items())
        sizes: dict[Key, int] = {}
        for key in self.everything[name] if self.top is not None else ():
            sizes[self._group(key)] = sizes.get(self._group(key), 0) + 1
        return any(group[0] == start and size >= (self.top or 0) for group, size in sizes.items())

    def _named(self, key: Key) -> Row:
        return dict(zip(("timestamp", *self.names), key, strict=True))

    def _group(self, key: Key) -> Key:
        """Return bucket and values within which the others are ranked."""
        places = [1 + self.names.index(name) for name in self.within]
        return (key[0], *(key[place] for place in places))

    def _table(self, name: str, names: Sequence[str], truth: WideTruth) -> Table:
        """Return all rows of a metric by *names*, under the names of columns."""
        metric, over = _metric(name), self.over
        if isinstance(metric, CohortShare):
            rows = [
                {
                    **{key: row[key] for key in ("timestamp", *names)},
                    metric.name: row["retention"],
                    f"d{metric.age}_returned": row["returned"],
                    f"d{metric.age}_installs": None if row["returned"] is None else row["installs"],
                }
                for row in self._cohorts((metric.age,), names)
            ]
        elif name in ALIASES:
            rows = alias_rows(
                name,
                names,
                self.every,
                over,
                lambda source, every: truth.table(source, names, over=over, every=every, **self.narrowed),
            )
        else:
            since = self.query.get("since_days_ago") if metric.takes_since_days_ago else None
            rows = truth.table(name, names, over=over, every=self.every, since_days_ago=since, **self.narrowed)
        shown = metric.shown_columns(all_fields=True)
        return {
            tuple(row[key] for key in ("timestamp", *names)): {column: row[field] for field, column in shown.items()}
            for row in rows
        }

    def _with_top(self, name: str, table: Table) -> Table:
        """Return the rows of *table* that `top` keeps, with those for the events that it leaves out."""
        if self.top is None:
            return table
        main, order, groups = self.fields(name)[0], self._ranking(name), dict[Key, list[Key]]()
        for key in sorted(table, key=lambda key: rank(self._named(key) | table[key], main, order)):
            groups.setdefault(self._group(key), []).append(key)
        kept = {key for members in groups.values() for key in members[: self.top]}
        largest = {key: row for key, row in table.items() if key in kept}
        return largest | (self._others(name, kept) if self.query.get("other") else {})

    def _others(self, name: str, kept: Collection[Key]) -> Table:
        """Return the rows `(other)`: the metric over the events that have none of the values that are *kept*."""
        counts, rows = _sums(name), dict[Key, Row]()
        for start, (first, last) in zip(_stamps(self.over, self.every), _spans(self.over, self.every), strict=True):
            facts = [
                fact
                for fact in self.truth.facts
                if first <= fact.ts < last
                and (start, *(self.truth.value(fact, dimension) for dimension in self.names)) not in kept
            ]
            remaining = copy(self.truth)  # players have installed and bought as before
            remaining.facts = facts
            table = self._table(name, self.within, remaining)
            for key, row in table.items():
                if key[0] == start and any(row[column] for column in counts):
                    values = iter(key[1:])
                    full = (start, *(next(values) if it in self.within else OTHER for it in self.names))
                    rows[full] = row
        return rows

    def _ranking(self, name: str) -> list[str]:
        """Return the dimensions that order rows of the same size (Wire 2.10, Row order)."""
        names = [it for it in self.names if it != "studio_id" or "game_id" not in self.names]
        is_one_answer = _metric(name).kinds != "plain" and len(names) == 2
        return sorted(names, key=lambda it: it == "game_id") if is_one_answer else names

    def _cohorts(self, ages: Sequence[int], names: Sequence[str]) -> Iterable[Row]:
        """Yield retention: of those who installed in a bucket, who came back at each age (Wire 4.12, Retention)."""
        truth, where = self.truth, self.narrowed["where"]
        scopes = [(f"{field.rstrip('s')}_id", ids) for field, ids in self.narrowed.items() if field != "where"]
        scopes.append(("game_id", GAMES["acme"]))
        active = {(fact.player, fact.day) for fact in truth.facts}
        cohorts: dict[Key, list[Any]] = {}
        start = self.over.start.replace(hour=0, minute=0)
        end = self.over.end if self.over.end.hour == 0 else LAST_MIDNIGHT + timedelta(days=1)
        for player, install in truth.installs.items():
            is_asked = start <= install.ts < min(end, AVAILABLE.end) and truth._meets(install, where)
            if is_asked and all(truth.value(install, name) in ids for name, ids in scopes):
                bucket = start if self.every == "all" else _start_of(install.ts, self.every)
                key = (bucket, *(truth.value(install, name) for name in names))
                cohorts.setdefault(key, []).append((player, install.day))
        for (bucket, *values), players in sorted(cohorts.items(), key=lambda item: item[0][0]):
            for age in ages:
                old = [it for it in players if it[1] + timedelta(days=age) < LAST_MIDNIGHT.date()]
                is_known = bool(old) if self.every == "all" else len(old) == len(players)
                counted = old if is_known else players
                back = sum((player, day + timedelta(days=age)) in active for player, day in counted)
                yield {
                    **{"timestamp": bucket, "age": age, **dict(zip(names, values, strict=True))},
                    **{"installs": len(counted), "returned": back if is_known else None},
                    "retention": back / len(counted) if is_known else None,
                }

    # Whether a frame is right

    def check(self, frame: pd.DataFrame, gaps: Gaps = ()) -> None:
        """Assert that *frame* has the expected columns, types, rows and order, but for what is in *gaps*.

        A cell in a gap is null or its row is absent; it never has another number.
        """
        assert [*frame.columns] == self.columns, ([*frame.columns], self.columns)
        self._check_types(frame)
        plain = _plain(frame)
        actual = {tuple(row[key] for key in self._keys): row for row in plain}
        assert len(actual) == len(plain), "two rows of the same bucket and values"
        for name in self.titled:
            assert all(row[TITLES[name]] == TITLE_OF.get(row[name], row[name]) for row in plain)
        if not gaps:
            missing, extra = self.rows.keys() - actual.keys(), actual.keys() - self.rows.keys()
            assert not missing, f"{len(missing)} rows are missing: {sorted(map(str, missing))[:3]}"
            assert not extra, f"{len(extra)} rows too many: {sorted(map(str, extra))[:3]}"
        for gap in (gap for gap in gaps if gap["metric"] in self.metrics and self._is_cut(self.every)):
            starts, ends = zip(*_spans(self.over, self.every), strict=True)  # a sum that lacks a piece lacks its bucket
            interval = Interval.parse(gap["interval"])
            assert (interval.start in starts, interval.end in ends) == (True, True), gap
        for key, row in self.rows.items():
            for column, value in row.items():
                found = actual[key][column] if key in actual else None
                hidden = [gap for gap in gaps if self._hides(gap, key, column)]
                if hidden:
                    assert found is None or self._may_be_known(hidden), f"{column} of {key} is {found} in a gap"
                elif not gaps or value not in (0, None):
                    assert _is_near(found, value, self._slack(key)), f"{column} of {key} is {found}, not {value}"
        for key, row in actual.items() if gaps else ():
            for column in row.keys() - {*self._keys, *self.by}:
                assert self._is_true(key, column, row[column]), f"{column} of {key} is {row[column]} beside a gap"
        self._check_order(plain)

    def _check_types(self, frame: pd.DataFrame) -> None:
        kinds = {"timestamp": "datetime64[us, UTC]"} | dict.fromkeys(self.names, "category")
        kinds |= {name: "category" for name in self.by if name in IDS}
        if self.ages:
            kinds |= {"age": "Int64", "installs": "Int64", "returned": "Int64", "retention": "float64"}
        for name in self.metrics:
            metric = _metric(name)
            for field in metric.fields:
                is_mean = name in ("dau", "dap") and self.every != "day"
                kind = "Int64" if field.kind == "count" and not is_mean else "float64"
                kinds.setdefault(metric.columns[field.name], kind)
        actual = {name: str(kind) for name, kind in frame.dtypes.items()}
        assert actual == {name: kinds[name] for name in self.columns}

    def _check_order(self, plain: Sequence[Row]) -> None:
        """Assert that rows come by time, of one metric largest first and `(other)` last (Wire 2.10, Row order)."""
        if (sort := self.query.get("sort")) is not None:
            values = [row[sort] for row in plain if row[sort] is not None]
            assert values == sorted(values, reverse=True)
            assert all(row[sort] is None for row in plain[len(values) :])
            return
        stamps = [row["timestamp"] for row in plain]
        assert stamps == sorted(stamps)
        if len(self.metrics) != 1 or isinstance(_metric(self.metrics[0]), CohortShare):
            return
        (name,) = self.metrics
        main, order = self.fields(name)[0], self._ranking(name)
        keys = [
            (row["timestamp"], True) if OTHER in row.values() else (row["timestamp"], False, *rank(row, main, order))
            for row in plain
        ]
        assert keys == sorted(keys), plain

    def _hides(self, gap: Mapping[str, Any], key: Key, column: str) -> bool:
        """Return whether the number in *column* of a row is not known because of *gap*."""
        interval, scope = Interval.parse(gap["interval"]), dict(gap["scope"] or {})
        moved = timedelta(days=scope.pop("since_days_ago", 0) if gap["metric"] == "retention_retro" else 0)
        if self.ages:
            return self._hides_cohort(gap, key, interval, moved)
        wanted = [name for name in self.metrics if column in self.fields(name)]
        if not any(gap["metric"] in {source for source, _ in _sources(name)} for name in wanted):
            return False
        is_of_cohorts = all(isinstance(_metric(name), CohortShare) for name in wanted)
        start, end = self._bucket(key[0])
        moved = moved if is_of_cohorts else timedelta()
        if not (interval.start < end + moved and start + moved < interval.end):
            return False
        values, are_pooled = self._named(key), "game_id" in scope and "game_id" not in self.names
        if OTHER in key or self.top is not None or are_pooled or any(name in ALIASES for name in wanted):
            return True  # which rows there are, or what a row is made of, depends on all values
        return all(values[name] == value for name, value in scope.items() if name in values)

    def _hides_cohort(self, gap: Mapping[str, Any], key: Key, interval: Interval, moved: timedelta) -> bool:
        start, end = self._bucket(key[0])
        is_of_age = gap["metric"] == "new_users" or moved == timedelta(days=key[1])
        return is_of_age and interval.start < end + moved and start + moved < interval.end

    def _slack(self, key: Key) -> float:
        """Return by how much a number may be wrong: what is left of large numbers lacks their last digits."""
        if OTHER not in key:
            return 0.0
        rows = [row for table in self.shown.values() for it, row in table.items() if it[0] == key[0]]
        return 1e-9 * sum(abs(float(value or 0)) for row in rows for value in row.values())

    def _may_be_known(self, hidden: Gaps) -> bool:
        """Return whether numbers in a gap may be known: it is of some values, of a total, of one of several metrics."""
        is_of_one = len(self.metrics) == 1 and self.metrics[0] not in ALIASES
        is_of_rows = not any(self.query.get(field) for field in ("top", "check"))
        return not is_of_one or not is_of_rows or any(gap["scope"] for gap in hidden)

    def _is_true(self, key: Key, column: str, found: Any) -> bool:
        """Return whether a number is right or not given, also in a row that is among the largest only beside a gap."""
        known = [self.rows[key][column]] if key in self.rows else []
        if column == "installs" and self.every == "all":  # those that are too young as well
            known.append(found)
        for name in self.metrics:
            if column in self.fields(name):
                row = self.everything[name].get(key)
                known.append(row[column] if row is not None else 0)
        return found is None or any(value is not None and _is_near(found, value) for value in known)

    def changed(self, before: Expected) -> dict[tuple[str, datetime], int]:
        """Return by metric and bucket how many rows are not what they were *before*, absent or new ones included."""
        pairs = {"retention": (before.rows, self.rows)} if self.ages else {}
        pairs |= {name: (before.shown[name], self.shown[name]) for name in self.metrics}
        found = Counter[tuple[str, datetime]]()
        for name, (old, new) in pairs.items():
            numbers = ["retention", "installs", "returned"] if self.ages else self.fields(name)
            nothing = dict.fromkeys(numbers, 0) if len(self.metrics) > 1 else {}
            for key in old.keys() | new.keys():
                one, other = old.get(key, nothing), new.get(key, nothing)
                is_there = bool(one and other)
                found[name, key[0]] += not is_there or not all(_is_near(one[it] or 0, other[it] or 0) for it in numbers)
        return dict(+found)

    def has_changed(self, before: Expected, start: datetime, column: str) -> bool:
        """Return whether a number in *column* of a bucket of retention is not what it was."""
        old, new = before.rows, self.rows
        keys = [key for key in old.keys() | new.keys() if key[0] == start]
        return any(key not in old or key not in new or old[key][column] != new[key][column] for key in keys)

    def total(self, name: str, start: datetime, column: str) -> Any:
        """Return the sum of a column over the rows of a metric in a bucket."""
        return sum(row[column] or 0 for key, row in self.shown[name].items() if key[0] == start)

    def _bucket(self, start: datetime) -> tuple[datetime, datetime]:
        whole = self.over if self.every == "all" else Interval(start, start + timedelta(seconds=1))
        (_, first, last), *_ = buckets(whole.start, whole.end, self.every)
        return first, last


def _is_near(found: float | None, value: float | None, slack: float = 0.0) -> bool:
    """Return whether a number is right, but for its last digits or *slack*."""
    if found is None or value is None:
        return found is value
    return is_close(float(found), float(value)) or abs(found - value) <= slack


def _plain(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame under the names of its columns, null as None."""
    bare = pd.DataFrame(frame)
    bare.attrs = {}  # the receipt, which pandas copies at every step
    plain = bare.astype(object)
    records = plain.where(plain.notna(), None).to_dict("records")
    rows = [{str(name): value for name, value in row.items()} for row in records]
    return [row | {"timestamp": row["timestamp"].to_pydatetime()} for row in rows]


def _metric(name: str) -> Metric:
    return METRICS.get(name) or ALIASES[name]


def _names(names: Any) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _sources(name: str) -> list[tuple[str, Granularity | None]]:
    """Return the metrics of the service that a metric takes, each with its own bucket."""
    return [*ALIASES[name].needs] if name in ALIASES else [(name, None)]


def _sums(name: str) -> list[str]:
    """Return the columns of a metric in which a missing row is 0."""
    metric = _metric(name)
    return [metric.columns[field.name] for field in metric.fields if field.combines == "sum"]


def _stamps(over: Interval, every: str) -> list[datetime]:
    """Return the timestamps of the buckets of *over*."""
    stamps = [stamp for stamp, _, _ in buckets(over.start, over.end, every)]
    return [datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone(UTC) for stamp in stamps]


def _spans(over: Interval, every: str) -> list[tuple[datetime, datetime]]:
    """Return the part of *over* in each bucket."""
    return [(max(first, over.start), min(last, over.end)) for _, first, last in buckets(over.start, over.end, every)]


def _start_of(moment: datetime, every: str) -> datetime:
    return _stamps(Interval(moment, moment + timedelta(seconds=1)), every)[0]
