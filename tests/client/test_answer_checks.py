"""Answers that are the expected JSON and cannot be right (Wire 2.9, Answer shapes)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from starlette.responses import Response

from gamelens.catalog import METRICS
from gamelens.client.sync_client import Client
from gamelens.client.tables.answer_reading import read_answer
from gamelens.client.tables.table_operations import row_codes
from gamelens.errors import PartialResult, ServiceError
from gamelens.wire.filters import Filter, dim
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries
from gamelens.wire.results import Rows, encode_answer
from support.hypothesis_profiles import examples
from support.scripted_service import Script

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
PAIR = ("platform", "country_code")
SERIES = MetricQuery(interval=WEEK, query=Timeseries())
GROUP = MetricQuery(interval=WEEK, query=Group("platform"))
SPLIT = MetricQuery(interval=WEEK, query=Split(PAIR))
BY_GAME = MetricQuery(interval=WEEK, split_by="platform")
DIMENSIONS = {"series": (), "group": ("platform",), "split": PAIR, "by game": ("platform", "game_id")}
QUERIES = {"series": SERIES, "group": GROUP, "split": SPLIT, "by game": BY_GAME}
FIRST = "2026-11-01T00:00:00.000Z"

Json = dict[str, Any]


def entry(kind: str, *rows: Json, stamp: str = FIRST) -> list[Json]:
    """Return the entries of one bucket (Wire 2.9, Answer shapes)."""
    if kind == "group":
        return [{"result": list(rows), "timestamp": stamp}]
    if kind == "split":
        return [{"event": row, "timestamp": stamp, "version": "v1"} for row in rows]
    return [{"result": row, "timestamp": stamp} for row in rows]


def row(kind: str, **more: Any) -> Json:
    """Return a row of players, all of one platform, country and game."""
    values = {"platform": "ios", "country_code": "DE", "game_id": "1001"}
    return {name: values[name] for name in DIMENSIONS[kind]} | {"user_unique": 3} | more


def read(kind: str, entries: list[Json] | bytes, metric: str = "user_unique") -> pa.Table:
    """Return an answer decoded, from its entries or its bytes."""
    body = entries if isinstance(entries, bytes) else json.dumps({"result": entries}).encode()
    return read_answer(metric, QUERIES[kind], DIMENSIONS[kind], body)


def refusal(kind: str, entries: list[Json] | bytes, metric: str = "user_unique") -> str:
    """Return the message with which an answer is refused."""
    with pytest.raises(ServiceError, match="200: an impossible answer: ") as raised:
        read(kind, entries, metric)
    return (
        str(raised.value)
        .removeprefix("the service answered 200: an impossible answer: ")
        .partition(". The answer was")[0]
    )


# Buckets


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize(
    "stamp",
    ["2026-11-08T00:00:00.000Z", "2026-10-31T00:00:00.000Z", "2026-11-01T12:00:00Z", "2026-11-01T00:00:00+01:00"],
)
def test_a_bucket_that_was_not_queried_is_refused(kind: str, stamp: str) -> None:
    """A bucket outside the interval or off the grid of days is named beside the interval."""
    moment = datetime.fromisoformat(stamp).astimezone(UTC)
    assert refusal(kind, entry(kind, row(kind), stamp=stamp)) == (
        f"a bucket of {moment:%Y-%m-%dT%H:%M:%S}Z where 2026-11-01T00:00Z/2026-11-08T00:00Z was queried: "
        "it is not the start of a day in it"
    )


def test_an_empty_bucket_that_was_not_queried_is_refused() -> None:
    """A bucket of a group is checked whether or not it has rows."""
    assert "a bucket of 2027-01-01" in refusal("group", entry("group", stamp="2027-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("every", "good", "bad"),
    [
        ("day", "2026-11-04", "2026-11-04T00:00:01"),
        ("week", "2026-11-02", "2026-11-04"),
        ("month", "2026-11-01", "2026-11-04"),
        ("week", "2026-11-09", "2026-11-16"),
        ("month", "2026-11-01", "2026-12-01"),
    ],
)
def test_each_granularity_has_its_grid(every: Any, good: str, bad: str) -> None:
    """A cut bucket has the start of the whole one (Wire 2.8, Intervals and buckets)."""
    query = MetricQuery(
        interval=Interval.parse("2026-11-04T06:00Z/2026-11-12T00:00Z"), granularity=every, query=Timeseries()
    )

    def answered(stamp: str) -> pa.Table:
        moment = datetime.fromisoformat(stamp).isoformat()
        return read_answer(
            "user_unique", query, (), json.dumps({"result": entry("series", row("series"), stamp=moment)}).encode()
        )

    assert len(answered(good)) == 1
    with pytest.raises(ServiceError, match="an impossible answer: a bucket of"):
        answered(bad)


def test_the_whole_interval_is_one_bucket() -> None:
    """Two timestamps are refused: one of the rows cannot be that of the whole interval."""
    query = msgspec.structs.replace(SERIES, granularity="all")
    entries = [*entry("series", row("series")), *entry("series", row("series"), stamp="2026-11-02T00:00:00Z")]
    with pytest.raises(ServiceError, match="it is not the start of the interval"):
        read_answer("user_unique", query, (), json.dumps({"result": entries}).encode())


def test_a_bucket_of_a_group_twice_is_refused() -> None:
    """A bucket is one entry of a group, also where the second one is written in another way or is empty."""
    twice = [*entry("group", row("group")), *entry("group", stamp="2026-11-01T01:00:00+01:00")]
    assert refusal("group", twice) == "the bucket of 2026-11-01T00:00:00Z occurs 2 times"


def test_buckets_that_are_left_out_are_no_fault() -> None:
    """A service may leave buckets out, and need not sort them."""
    later = entry("group", row("group"), stamp="2026-11-05T00:00:00Z")
    assert len(read("group", [*later, *entry("group", row("group"))])) == 2


# Rows


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("series", ""),
        ("group", ", platform = 'ios'"),
        ("split", ", platform = 'ios', country_code = 'DE'"),
        ("by game", ", platform = 'ios', game_id = '1001'"),
    ],
)
def test_a_row_twice_is_refused(kind: str, named: str) -> None:
    """Two rows of one bucket and the same values are named, even if their numbers differ."""
    assert (
        refusal(kind, entry(kind, row(kind), row(kind, user_unique=4)))
        == f"a second row of 2026-11-01T00:00:00Z{named}"
    )


@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_the_null_row_twice_is_refused(more: Json) -> None:
    """Null is a value like another: a bucket has one row of it."""
    nothing = row("group", platform=None, **more)
    assert refusal("group", entry("group", nothing, nothing)) == "a second row of 2026-11-01T00:00:00Z, platform = None"


def test_rows_that_differ_in_one_dimension_are_no_fault() -> None:
    """Rows of one bucket differ in at least one dimension; texts are compared exactly."""
    rows = [row("split", platform=platform) for platform in ("ios", "iOS", "ios ", "", None)]
    assert len(read("split", entry("split", *rows))) == 5


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_negative_count_is_refused(kind: str, more: Json) -> None:
    """A negative count is named with its row."""
    assert refusal(kind, entry(kind, row(kind, user_unique=-3, **more))).endswith(": user_unique is -3")


def test_a_negative_part_of_a_ratio_is_refused() -> None:
    """Each count of a row is checked, not only that of the metric."""
    paid = {"arppu": 1.0, "paying_users": -1, "total_revenue": 100}
    assert refusal("series", entry("series", paid), "arppu") == (
        "a negative count in the row of 2026-11-01T00:00:00Z: paying_users is -1"
    )


def test_negative_money_is_no_fault() -> None:
    """A service may count refunds, so an amount may be below zero, in cents too."""
    refunded = {"arppu": -1.0, "paying_users": 1, "total_revenue": -100}
    assert read("series", entry("series", refunded), "arppu")["total_revenue"].to_pylist() == [-100]


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("more", [{}, {"users": "3"}, {"is_new": True}])
def test_a_row_without_the_field_of_its_metric_is_refused(kind: str, more: Json) -> None:
    """A row that lacks the metric's own field is named with the fields it has."""
    lacking = {name: value for name, value in row(kind).items() if name != "user_unique"} | more
    message = refusal(kind, entry(kind, lacking))
    assert message.startswith("the row of 2026-11-01T00:00:00Z")
    assert message.endswith(f" has no user_unique, only {', '.join(map(repr, lacking)) or 'nothing'}")


@pytest.mark.parametrize(
    ("metric", "own_field"), [("revenue", "sum"), ("retention_retro", "retention"), ("conversion", "conversion")]
)
def test_the_field_of_a_metric_is_the_one_it_is_sorted_by(metric: str, own_field: str) -> None:
    """The number of a metric may not be missing; the parts that a service adds may."""
    assert f"has no {own_field}" in refusal("series", entry("series", {"event_count": 1, "user_unique": 1}), metric)
    assert read("series", entry("series", {own_field: 0.5}), metric)[own_field].to_pylist() == [0.5]


def test_a_field_that_is_null_is_there() -> None:
    """A ratio of nothing is null (Wire 4.13, Numbers)."""
    empty = {"conversion": None, "paying_users": 0, "user_unique": 0}
    assert read("series", entry("series", empty), "conversion")["conversion"].to_pylist() == [None]


# Keys

GOOD = b'{"result":[{"result":[{"platform":"ios","user_unique":3}],"timestamp":"2026-11-01T00:00:00Z"}]}'


@pytest.mark.parametrize(
    ("was", "comes", "message"),
    [
        (b'"user_unique":3', b'"user_unique":3,"user_unique":4', "result[0].result[0] has the key 'user_unique'"),
        (b'"user_unique":3', b'"user_unique":3, "user_unique" : 3', "result[0].result[0] has the key 'user_unique'"),
        (b'"user_unique":3', b'"user_unique":3,"user\\u005funique":4', "result[0].result[0] has the key 'user_unique'"),
        (b'"platform":"ios"', b'"platform":"ios","platform":"tvos"', "result[0].result[0] has the key 'platform'"),
        (b'"timestamp"', b'"timestamp":"2026-11-02T00:00:00Z","timestamp"', "result[0] has the key 'timestamp'"),
        (b'{"result":[{"result"', b'{"result":[],"result":[{"result"', "the answer has the key 'result'"),
        (b'"ios"', b'"ios","more":{"a":[{"b":1,"b":2}]}', "result[0].result[0].more.a[0] has the key 'b'"),
        (b'{"result":[{', b'{"more":{"a":1,"a":2},"result":[{', "more has the key 'a'"),
    ],
)  # fmt: skip
def test_a_key_twice_is_refused_with_its_place_and_values(was: bytes, comes: bytes, message: str) -> None:
    """Two values of one key cannot both be right, wherever the key stands."""
    body = GOOD.replace(was, comes, 1)
    assert body != GOOD
    assert refusal("group", body).startswith(f"{message} more than once, with ")
    assert len(read("group", GOOD)) == 1


def test_both_values_of_a_key_are_named() -> None:
    """The message has the values of the key, each on one line and of bounded length."""
    body = GOOD.replace(b'"ios"', b'"ios","platform":"%s\\n"' % (b"x" * 500))
    message = refusal("group", body)
    assert message.startswith("result[0].result[0] has the key 'platform' more than once, with 'ios' and 'xxx")
    assert len(message) < 250


@pytest.mark.parametrize("text", ['":', 'a":"b', "\\", '"', "{}", '\\":'])
@pytest.mark.parametrize("indent", [None, 2])
def test_text_that_looks_like_a_key_is_no_fault(text: str, indent: int | None) -> None:
    """A value may hold quotation marks and colons, and JSON any white space."""
    tree = {"result": entry("group", row("group", platform=text))}
    for separators in ((",", ":"), (", ", ": "), (" , ", " : ")):
        body = json.dumps(tree, indent=indent, separators=separators).encode()
        assert read("group", body)["platform"].to_pylist() == [text]


def test_a_list_with_a_key_twice_is_refused(lens: Client, make_lens: Callable[..., Client]) -> None:
    """The lists of studios, games and values are held to the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        bodies = {"interval": b'"2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"'}
        body = bodies.get(scope["path"].rpartition("/")[2], b'[{"id":"s1","name":"North","name":"South"}]')
        await Response(body)(scope, receive, send)

    with pytest.raises(ServiceError, match=r"\[0\] has the key 'name' more than once, with 'North' and 'South'"):
        make_lens(app).studios(over="2026-11-01")


# Any impossible answer


def entries_of(kind: str, rows: list[tuple[int, Json]]) -> list[Json]:
    """Return the entries of *rows*, each with the number of its day."""
    by_day: dict[int, list[Json]] = {}
    for day, fields in rows:
        by_day.setdefault(day, []).append(fields)
    buckets = (Rows(DAY + timedelta(days=day), fields) for day, fields in sorted(by_day.items()))
    return json.loads(encode_answer(QUERIES[kind], buckets))["result"]  # type: ignore[no-any-return]


def rows_in(entries: list[Json]) -> Iterator[Json]:
    """Yield the rows of an answer, which may be changed."""
    for each in entries:
        inner: Any = each.get("event", each.get("result"))
        yield from inner if isinstance(inner, list) else [inner]


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, list[Json]]:
    """Draw the kind and entries of a valid answer with at least one row."""
    kind = draw(st.sampled_from(list(QUERIES)))
    more = draw(st.sampled_from([{}, {"surprise": [{"a": 1}]}]))
    texts = st.none() | st.sampled_from(["ios", "NA", 'say "a":']) | st.text(max_size=3)
    keys = st.tuples(st.integers(0, 6), *(texts for _ in DIMENSIONS[kind]))
    drawn = draw(st.lists(keys, min_size=1, max_size=6, unique=True))
    rows = [
        (day, dict(zip(DIMENSIONS[kind], values, strict=True)) | {"user_unique": draw(st.integers(0, 9))} | more)
        for day, *values in drawn
    ]
    return kind, entries_of(kind, rows)


@given(answers(), st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")]))
@settings(deadline=None)
def test_a_possible_answer_is_never_refused(answer: tuple[str, list[Json]], separators: tuple[str, str]) -> None:
    """Any rows of distinct values in the queried buckets are a table, in any writing of the JSON."""
    kind, entries = answer
    table = read(kind, json.dumps({"result": entries}, separators=separators).encode())
    assert sorted(table["user_unique"].to_pylist()) == sorted(fields["user_unique"] for fields in rows_in(entries))


@given(answers(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_an_impossible_answer_is_always_refused(answer: tuple[str, list[Json]], data: st.DataObject) -> None:
    """Any valid answer with one fault put into it is refused."""
    kind, entries = answer
    fault = data.draw(st.sampled_from(["row", "bucket", "stamp", "count", "field"]))
    each = data.draw(st.sampled_from(entries))
    fields = data.draw(st.sampled_from(list(rows_in(entries))))
    if fault == "row" and kind == "group":
        assume(each["result"])
        each["result"].append(each["result"][0] | {"user_unique": 1})
    elif fault in ("row", "bucket"):
        entries.insert(data.draw(st.integers(0, len(entries))), each | ({"result": []} if kind == "group" else {}))
    elif fault == "stamp":
        shift = data.draw(st.sampled_from([timedelta(days=7), -timedelta(days=8), timedelta(milliseconds=1)]))
        each["timestamp"] = (datetime.fromisoformat(each["timestamp"]) + shift).isoformat()
    elif fault == "count":
        fields["user_unique"] = -1 - fields["user_unique"]
    else:
        del fields["user_unique"]
    refusal(kind, entries)


def written(tree: Any, number: int, separators: tuple[str, str], again: str = ":") -> str:
    """Return *tree* as JSON, with the first key of its object of this *number* written twice.

    The first time it is followed by *again*, for a colon.
    """
    seen = -1
    comma, colon = separators

    def text(node: Any) -> str:
        nonlocal seen
        if isinstance(node, list):
            return f"[{comma.join(map(text, node))}]"
        if not isinstance(node, dict):
            return json.dumps(node)
        seen += 1
        repeats = list(node.items())[:1] if seen == number else []
        return (
            "{"
            + comma.join(f"{json.dumps(name)}{colon}{text(member)}" for name, member in [*repeats, *node.items()])
            + "}"
        )

    return text(tree)


@given(
    answers(),
    st.integers(0, 30),
    st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")]),
    st.sampled_from([":", "\t: ", "\n:"]),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_key_twice_is_refused_in_any_object(
    answer: tuple[str, list[Json]], number: int, separators: tuple[str, str], again: str
) -> None:
    """Any object of an answer with a key twice is found, in any writing of the JSON."""
    kind, entries = answer
    body = written({"result": entries}, number, separators, again)
    assume(len(body) > len(written({"result": entries}, -2, separators)))
    assert "more than once" in refusal(kind, body.encode())


@given(st.lists(st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.sampled_from("xy")), max_size=12))
def test_codes_are_equal_where_rows_are(rows: list[tuple[str | None, str | None]]) -> None:
    """Two rows have the same code if and only if all their values are the same, null included."""
    table = pa.table(
        {name: pa.array([values[place] for values in rows], pa.string()) for place, name in enumerate("ab")}
    )
    codes = row_codes(table, ("a", "b")).tolist()
    assert [[one == other for other in codes] for one in codes] == [[one == other for other in rows] for one in rows]


# In a query


def test_an_impossible_answer_is_no_frame(lens: Client, script: Script) -> None:
    """A query whose only answer is impossible raises its error."""
    script.answers["user_unique"] = lambda _: entry("group", row("group"), row("group"))
    with pytest.raises(ServiceError, match="a second row of 2026-11-01T00:00:00Z, platform = 'ios'"):
        lens.query("user_unique", by="platform", over=WEEK)


def test_an_impossible_piece_is_a_gap_of_the_frame(make_lens: Callable[..., Client], script: Script) -> None:
    """Of a query in pieces the good ones are returned, and the error names what is wrong with the other."""

    def answer(body: Json) -> list[Json]:
        day = body["interval"][:10]
        return entry("group", row("group", user_unique=-1 if day == "2026-11-02" else 1), stamp=f"{day}T00:00:00Z")

    script.answers["user_unique"] = answer
    lens = make_lens(max_days=1)
    frame = lens.query("user_unique", by="platform", over="2026-11-01/P3D", on_error="gaps")
    (gap,) = frame.attrs["gamelens"]["gaps"]
    assert (frame["user_unique"].tolist(), gap["interval"]) == ([1, 1], "2026-11-02T00:00Z/2026-11-03T00:00Z")
    assert "user_unique is -1" in gap["error"]
    with pytest.raises(PartialResult, match="user_unique is -1"):
        lens.query("user_unique", by="platform", over="2026-11-01/P3D")


def test_an_impossible_answer_is_not_kept(make_lens: Callable[..., Client], script: Script) -> None:
    """The cache holds nothing of a refused answer: the next query asks again."""
    script.answers["user_unique"] = lambda _: entry("series", row("series", user_unique=-1))
    lens = make_lens()
    with pytest.raises(ServiceError):
        lens.query("user_unique", over="2026-11-01")
    script.answers["user_unique"] = lambda _: entry("series", row("series"))
    assert lens.query("user_unique", over="2026-11-01")["user_unique"].tolist() == [3]


# Shares


@pytest.mark.parametrize(
    ("metric", "field", "share"),
    [
        (metric.name, field.name, share)
        for metric in METRICS.values()
        for field in metric.fields
        for share in (1.2, -0.1)
        if field.unit == "share" and (field.name, share) != ("installs_ratio", 1.2)
    ],
)
def test_a_share_beyond_0_to_1_is_refused(metric: str, field: str, share: float) -> None:
    """Every metric that the catalog calls a share, retention among them."""
    assert refusal("by game", entry("by game", share_row(field, share)), metric) == (
        "a share outside 0 to 1 in the row of 2026-11-01T00:00:00Z, platform = 'ios', game_id = '1001': "
        f"{field} is {share}"
    )


@pytest.mark.parametrize("share", [0, 1, 1.0, None])
def test_the_ends_of_a_share_are_no_fault(share: float | None) -> None:
    """Nobody or everybody came back, or it is not known."""
    assert read("by game", entry("by game", share_row("retention", share)), "retention_retro")[
        "retention"
    ].to_pylist() == [share]


def test_more_players_may_install_than_are_active() -> None:
    """An export states installs of days on which the player sent no event (Wire 4.4, Install)."""
    answer = read("by game", entry("by game", share_row("installs_ratio", 2.0)), "installs_ratio")
    assert answer["installs_ratio"].to_pylist() == [2.0]


def share_row(field: str, value: float | None) -> Json:
    """Return a row of a share."""
    return {"platform": "ios", "game_id": "1001", field: value}


# Rows that were not queried


def narrowed(query: MetricQuery, dimensions: tuple[str, ...], *rows: Json) -> pa.Table:
    """Return an answer to *query* decoded."""
    kind = next(name for name, other in QUERIES.items() if type(other.query) is type(query.query))
    body = json.dumps({"result": entry(kind, *({"user_unique": 3} | each for each in rows))}).encode()
    return read_answer("user_unique", query, dimensions, body)


@pytest.mark.parametrize("asked", [{"game": "1001"}, {"games": ("1001",)}])
def test_a_game_that_was_not_queried_is_refused(asked: dict[str, Any]) -> None:
    """The row of another game, whichever way the game was named."""
    query = MetricQuery(interval=WEEK, query=Group("game_id"), **asked)
    assert narrowed(query, ("game_id",), {"game_id": "1001"}).num_rows == 1
    with pytest.raises(ServiceError, match=r"row of .*game_id = '1002' has a game that was not queried: only '1001'"):
        narrowed(query, ("game_id",), {"game_id": "1001"}, {"game_id": "1002"})


def test_a_game_of_a_studio_that_was_not_queried_is_refused() -> None:
    """Where the studio of the game is known; that of another game is not a fault."""
    query = MetricQuery(interval=WEEK, query=Group("game_id"), studios=("7",))
    own, other, unlisted = ({"user_unique": 3, "game_id": game} for game in ("1001", "1002", "1003"))
    body = [json.dumps({"result": entry("group", *rows_)}).encode() for rows_ in ([own, unlisted], [own, other])]
    studios = {"1001": "7", "1002": "8"}
    assert read_answer("user_unique", query, ("game_id",), body[0], studios).num_rows == 2
    with pytest.raises(ServiceError, match=r"the row of .*'1002' has a studio that was not queried: only '7' was"):
        read_answer("user_unique", query, ("game_id",), body[1], studios)


def test_a_studio_that_was_not_queried_is_refused() -> None:
    """Also where a service has the studio itself as a dimension."""
    query = MetricQuery(interval=WEEK, query=Group("studio_id"), studios=("7",))
    assert narrowed(query, ("studio_id",), {"studio_id": "7"}).num_rows == 1
    with pytest.raises(ServiceError, match=r"the row of .*'8' has a studio that was not queried: only '7' was"):
        narrowed(query, ("studio_id",), {"studio_id": "8"})


def test_a_missing_game_is_no_fault() -> None:
    """A dimension that is missing is null (Wire 2.9, Answer shapes)."""
    query = MetricQuery(interval=WEEK, query=Group("game_id"), games=("1001",))
    assert narrowed(query, ("game_id",), {}).num_rows == 1


IOS = dim.platform == "ios"
GERMAN = dim.country_code == "DE"


@pytest.mark.parametrize(
    ("where", "good", "bad"),
    [
        (IOS, ("ios", "DE"), ("android", "DE")),
        (IOS, ("ios", None), (None, "DE")),
        (~IOS, (None, "DE"), ("ios", "DE")),
        (IOS & GERMAN, ("ios", "DE"), ("ios", "US")),
        (IOS | GERMAN, ("android", "DE"), ("android", "US")),
        (IOS | (dim.build == "1"), ("android", "DE"), None),
        (IOS & (dim.build == "1"), ("ios", "DE"), ("android", "DE")),
        (~(IOS & (dim.build == "1")), ("ios", "DE"), None),
        (dim.platform.isin(["ios", "android"]), ("android", "DE"), ("windows", "DE")),
        (dim.platform.is_null(), (None, "DE"), ("ios", "DE")),
    ],
)
def test_a_row_against_the_filter_is_refused(
    where: Filter, good: tuple[str | None, ...], bad: tuple[str | None, ...] | None
) -> None:
    """As far as its own values tell: what the row does not have may fit (Wire 2.7, Filters)."""
    query = MetricQuery(interval=WEEK, query=Split(PAIR), filter=where)
    kept = dict(zip(PAIR, good, strict=True))
    assert narrowed(query, PAIR, kept).num_rows == 1
    if bad is not None:
        with pytest.raises(ServiceError, match=r"contradicts the filter, which excludes .*"):
            narrowed(query, PAIR, kept, dict(zip(PAIR, bad, strict=True)))
