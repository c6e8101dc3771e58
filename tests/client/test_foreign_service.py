"""The public client against a metrics service that shares no code with it (`support.foreign_service`)."""

from __future__ import annotations

import ast
import csv
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gamelens.catalog import METRICS
from gamelens.cli import cli
from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, BadQuery, NotYetAvailable, PartialResult, RateLimited, ServiceError
from gamelens.receipts import Receipt
from gamelens.wire.filters import dim
from gamelens.wire.intervals import Granularity
from support import foreign_service
from support.foreign_service import DAY, KEY, Fact, ForeignService, Moments, RefusalError, Row
from support.watched_service import is_close, with_service_names

OVER = (datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))
OCTOBER = (datetime(2026, 10, 6, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))  # longer than one request by day
DIMENSIONS: dict[str, list[str]] = {
    "none": [],
    "group": ["country_code"],
    "by game": ["game_id"],
    "split": ["country_code", "platform"],
}
KINDS = {name: METRICS[name].kinds for name in foreign_service.METRICS if name in METRICS}
"""Of the metrics that both know: the catalog may have more."""
PLAIN = [name for name, kinds in KINDS.items() if kinds == "plain"]
PER_GAME = [name for name, kinds in KINDS.items() if kinds == "per game"]


_numbers = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[ForeignService]:
    """A service for tests that change nothing but its dialect."""
    with foreign_service.foreign_service() as service:
        yield service


@pytest.fixture
def service(shared: ForeignService) -> ForeignService:
    """The shared service with the usual dialect and no request seen."""
    shared.dialect = foreign_service.Dialect()
    shared.refusals.clear()
    shared.seen.clear()
    return shared


@pytest.fixture
def connect(service: ForeignService) -> Iterator[Callable[..., Client]]:
    """A function that returns a client of the service."""
    with ExitStack() as clients:

        def make(**options: Any) -> Client:
            defaults: dict[str, Any] = {"metrics_url": service.address, "cache": False, "progress": False}
            defaults["api_key"] = f"{KEY}-{next(_numbers)}"  # of its own, and so a rate limiter of its own
            return clients.enter_context(Client(**defaults | options))

        yield make


@pytest.fixture
def lens(connect: Callable[..., Client]) -> Client:
    """A client without a cache."""
    return connect()


@pytest.fixture
def run_command(service: ForeignService, tmp_path: Path) -> Callable[..., Result]:
    """A function that runs `gamelens` against the service, with an empty home directory."""
    environment = {
        **{"GAMELENS_API_KEY": f"{KEY}-{next(_numbers)}", "GAMELENS_METRICS_URL": service.address},
        **{"XDG_CONFIG_HOME": str(tmp_path), "GAMELENS_STATE_DIR": str(tmp_path / "state"), "COLUMNS": "200"},
    }
    return lambda *words: CliRunner(env=environment).invoke(cli, [str(word) for word in words])


def text_of(over: Moments) -> str:
    """Return an interval as an analyst writes it."""
    return f"{over[0]:%Y-%m-%d}/{over[1]:%Y-%m-%d}"


def rows_of(frame: Any) -> list[Row]:
    """Return the rows of a frame in plain Python, null as None, the fields of one metric as the service names them."""
    frame = with_service_names(frame)
    plain = frame.astype(object).where(frame.notna(), None)
    return [row | {"timestamp": row["timestamp"].to_pydatetime()} for row in plain.to_dict("records")]


def assert_same(frame: Any, expected: Iterator[Row], by: list[str]) -> None:
    """Assert that *frame* has exactly the expected rows, in any order; a row of nothing may be absent."""
    names = ["timestamp", *by]
    actual = {tuple(row[name] for name in names): row for row in rows_of(frame)}
    assert len(actual) == len(frame), "two rows of the same bucket and values"
    wanted = {tuple(row[name] for name in names): row for row in expected}
    empty = {key for key, row in wanted.items() if not any(row[name] for name in row if name not in names)}
    assert wanted.keys() - empty <= actual.keys() <= wanted.keys()
    assert actual, "nothing to compare"
    for key, row in actual.items():
        assert row.keys() <= wanted[key].keys(), (row, wanted[key])
        assert all(is_close(row[name], wanted[key][name]) for name in row), (row, wanted[key])


def test_the_service_shares_no_code_with_the_client() -> None:
    """Its module imports the standard library alone."""
    tree = ast.parse(Path(foreign_service.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported, "no import found"
    assert not [name for name in imported if name.split(".")[0] not in sys.stdlib_module_names]


@pytest.mark.shown_by(8)
@pytest.mark.parametrize("by", DIMENSIONS.values(), ids=DIMENSIONS)
@pytest.mark.parametrize("metric", PLAIN)
def test_plain_metrics(service: ForeignService, lens: Client, metric: str, by: list[str]) -> None:
    """Every plain metric by 0 to 2 dimensions has the numbers of the service's own events."""
    frame = lens.query(metric, by=by, over=text_of(OVER), fields="all")
    assert set(frame.columns) == {"timestamp", *by, *METRICS[metric].columns.values()}
    assert_same(frame, service.truth(metric, by, over=OVER), by)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("by", [["platform", "country_code", "build"], ["platform", "game_id", "build"]], ids=str)
@pytest.mark.parametrize("metric", ["revenue", "arpu", "user_unique"])
def test_three_dimensions(service: ForeignService, lens: Client, metric: str, by: list[str]) -> None:
    """One request for each value, and one for events without a value, give the same rows."""
    assert_same(lens.query(metric, by=by, over=text_of(OVER)), service.truth(metric, by, over=OVER), by)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("by", [["game_id"], ["game_id", "country_code"], ["game_id", "platform", "build"]], ids=str)
@pytest.mark.parametrize("metric", PER_GAME)
def test_metrics_of_a_game(service: ForeignService, lens: Client, metric: str, by: list[str]) -> None:
    """Metrics that exist per game are asked by game."""
    assert_same(lens.query(metric, by=by, over=text_of(OVER)), service.truth(metric, by, over=OVER), by)


def test_returning_users_of_an_age(service: ForeignService, lens: Client) -> None:
    """With since_days_ago exactly those who were installed so many days before count."""
    frame = lens.query("returning_users", by="game_id", over=text_of(OVER), since_days_ago=2)
    assert_same(frame, service.truth("returning_users", ["game_id"], over=OVER, since=2), ["game_id"])


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("every", ["day", "week", "month", "all"])
@pytest.mark.parametrize("by", [[], ["country_code"]], ids=str)
def test_granularities(service: ForeignService, lens: Client, every: Granularity, by: list[str]) -> None:
    """Six weeks take two requests by day, and buckets of any size have the service's numbers."""
    frame = lens.query("revenue", by=by, over=text_of(OCTOBER), every=every)
    assert_same(frame, service.truth("revenue", by, over=OCTOBER, every=every), by)
    assert len(service.queries) == (2 if every == "day" else 1)


def test_several_metrics(service: ForeignService, lens: Client) -> None:
    """Metrics side by side have the numbers of each; what one has no row for is null."""
    frame = lens.query(["user_unique", "new_users", "event_count"], by="game_id", over=text_of(OVER))
    for metric in ("user_unique", "event_count"):
        assert_same(frame[["timestamp", "game_id", metric]], service.truth(metric, ["game_id"], over=OVER), ["game_id"])
    installs = {(row["timestamp"], row["game_id"]): row["new_users"] for row in rows_of(frame)}
    truth = {
        (row["timestamp"], row["game_id"]): row["new_users"]
        for row in service.truth("new_users", ["game_id"], over=OVER)
    }
    assert {key: number for key, number in installs.items() if number} == truth


def test_filters(service: ForeignService, lens: Client) -> None:
    """Comparisons joined by one `and` or one `or`, negations, and lists of values select the same events."""
    cases = {
        (dim.platform == "ios") & (dim.category == "ads"): lambda fact: (
            fact.value("platform") == "ios" and fact.value("category") == "ads"
        ),
        (dim.country_code == "US") | (dim.platform == "ios"): lambda fact: (
            fact.value("country_code") == "US" or fact.value("platform") == "ios"
        ),
        ~dim.country_code.isin(["US", "NA"]): lambda fact: fact.value("country_code") not in ("US", "NA"),
    }
    for where, selects in cases.items():
        frame = lens.query("event_count", by="platform", over=text_of(OVER), where=where)
        truth = service.truth("event_count", ["platform"], over=OVER, where=selects)
        assert_same(frame, truth, ["platform"])


def test_games_and_studios_narrow(service: ForeignService, lens: Client) -> None:
    """A query of one studio holds the events of its games alone."""
    frame = lens.query("event_count", over=text_of(OVER), studios=["st-9"])
    assert_same(frame, service.truth("event_count", over=OVER, where=lambda fact: fact.game != "700"), [])


def test_names_of_games_and_studios(lens: Client) -> None:
    """Titles that occur twice are told apart, whatever the order of the lists."""
    frame = lens.query("event_count", by=["studio", "game"], over=text_of(OVER))
    named = {(row["studio_id"], row["studio"], row["game_id"], row["game"]) for row in rows_of(frame)}
    assert named == {
        ("st-10", 'East & "West"', "700", "Tile Harbor"),
        ("st-9", "Südwind", "g-1", "Ember (Südwind, g-1)"),
        ("st-9", "Südwind", "g-2", "Ember (Südwind, g-2)"),
    }


def test_games_without_a_title(service: ForeignService, lens: Client) -> None:
    """A game without a title, or with null for one, is called by its id."""
    service.dialect.titles = False
    assert dict(lens.games(over=text_of(OVER))[["game_id", "game"]].itertuples(index=False)) == {
        name: name for name in ("700", "g-1", "g-2")
    }
    frame = lens.query("event_count", by="game", over=text_of(OVER))
    assert_same(frame.drop(columns="game"), service.truth("event_count", ["game_id"], over=OVER), ["game_id"])


def test_filters_of_many_comparisons_do_not_nest(service: ForeignService, lens: Client) -> None:
    """A service that takes one `and` without another in it takes three comparisons, also in a fan-out."""
    where = (dim.platform == "ios") & (dim.category == "ads") & (dim.ad_action == "show")
    by = ["country_code", "build", "ad_type"]

    def selects(fact: Fact) -> bool:
        return [fact.value(name) for name in ("platform", "category", "ad_action")] == ["ios", "ads", "show"]

    frame = lens.query("event_count", by=by, over=text_of(OVER), where=where)
    assert_same(frame, service.truth("event_count", by, over=OVER, where=selects), by)


def test_top_with_the_rest(service: ForeignService, lens: Client) -> None:
    """The two largest countries of each day and `(other)` add up to the service's total."""
    frame = lens.query("event_count", by="country_code", over=text_of(OVER), top=2, other=True)
    total = {row["timestamp"]: row["event_count"] for row in service.truth("event_count", over=OVER)}
    sums = dict.fromkeys(total, 0)
    for row in rows_of(frame):
        sums[row["timestamp"]] += row["event_count"]
    assert sums == total


def test_the_largest_pairs(service: ForeignService, lens: Client) -> None:
    """The service gives pairs in no order; the largest of each day are returned, largest first."""
    frame = lens.query("event_count", by=["platform", "country_code"], over=text_of(OVER), top=3)
    numbers: dict[datetime, list[int]] = {}
    for row in service.truth("event_count", ["platform", "country_code"], over=OVER):
        numbers.setdefault(row["timestamp"], []).append(row["event_count"])
    largest = {moment: sorted(of_day, reverse=True)[:3] for moment, of_day in numbers.items()}
    shown: dict[datetime, list[int]] = {}
    for row in rows_of(frame):
        shown.setdefault(row["timestamp"], []).append(row["event_count"])
    assert shown == largest


def test_a_limit_that_the_service_refuses(service: ForeignService, lens: Client) -> None:
    """A service that takes no limit above 100 is not asked in vain for ever: one refusal, one error."""
    service.dialect.limit_cap = 100
    with pytest.raises(BadQuery, match="422"):
        lens.query("event_count", by="country_code", over=text_of(OVER))
    assert len(service.queries) == 1
    frame = lens.query("event_count", by="country_code", over=text_of(OVER), top=100)
    assert_same(frame, service.truth("event_count", ["country_code"], over=OVER), ["country_code"])


@pytest.mark.parametrize("by", [["country_code"], ["country_code", "platform", "build"]], ids=str)
def test_a_limit_that_the_service_ignores(connect: Callable[..., Client], by: list[str]) -> None:
    """Exactly 100 values where all were asked for may be its default limit, and is a warning."""
    with foreign_service.foreign_service() as service:
        countries = (f"c{number}" for number in itertools.cycle(range(150)))
        service.facts = [
            replace(fact, values=fact.values | {"country_code": country})
            for fact, country in zip(service.facts, countries, strict=False)
        ]
        service.dialect.limit_cap, service.dialect.cuts_silently = 100, True
        lens = connect(metrics_url=service.address)
        with pytest.warns(UserWarning, match="exactly 100 values"):
            lens.query("event_count", by=by, over=text_of(OVER), every="all")


def test_a_check_against_the_total(lens: Client) -> None:
    """Rows by country agree with the total: no warning."""
    frame = lens.query("revenue", by="country_code", over=text_of(OVER), check=True)
    assert not Receipt.of(frame.attrs).warnings


@pytest.mark.parametrize("by", [[], ["game_id"], ["platform"]], ids=str)
def test_retention(service: ForeignService, lens: Client, by: list[str]) -> None:
    """Installs and returning players by install day and age, counted from the service's own events."""
    frame = lens.retention(days=[1, 3], over=text_of(OVER), by=by)
    installs: dict[tuple[Any, ...], set[str]] = {}
    seen_on: dict[str, set[datetime]] = {}
    for fact in service.facts:
        if fact.is_install and OVER[0] <= fact.at < OVER[1]:
            installs.setdefault((fact.installed, *map(fact.value, by)), set()).add(fact.player)
        seen_on.setdefault(fact.player, set()).add(fact.at.replace(hour=0, minute=0, second=0, microsecond=0))
    expected = {
        (day, *values, age): (len(players), sum(day + age * DAY in seen_on[player] for player in players))
        for (day, *values), players in installs.items()
        for age in (1, 3)
    }
    names = ["timestamp", *by, "age"]
    rows = {tuple(row[name] for name in names): (row["installs"], row["returned"]) for row in rows_of(frame)}
    assert rows == expected


def test_retention_is_asked_as_the_service_describes_it(service: ForeignService, lens: Client) -> None:
    """Its body has interval, since_days_ago and split_by, and no granularity (Wire 2.5, Query body)."""
    with pytest.warns(UserWarning, match="retention_retro has no row where nobody came back"):
        lens.query("retention_retro", by="game_id", over=text_of(OVER), since_days_ago=1)
    (body,) = [seen.body for seen in service.queries if seen.body and "since_days_ago" in seen.body]
    assert body == {"interval": "2026-11-02/P14D", "split_by": "game_id", "since_days_ago": 1}


def test_a_plan_costs_what_the_query_costs(service: ForeignService, lens: Client) -> None:
    """The plan of a query that is not fanned out names the number of requests that then arrive."""
    plan = lens.plan("revenue", by=["country_code", "platform"], over=text_of(OCTOBER))
    assert not service.queries
    lens.query("revenue", by=["country_code", "platform"], over=text_of(OCTOBER))
    assert plan.requests == len(service.queries) == 2


def test_lists(service: ForeignService, lens: Client) -> None:
    """Names, values, games and studios; values are in code point order whatever the service's is."""
    assert set(lens.metrics()) == set(foreign_service.METRICS)
    assert set(lens.dimensions()) == set(foreign_service.DIMENSIONS)
    assert lens.dimension_values("country_code", over=text_of(OVER)) == ["DE", "JP", "NA", "US"]
    games = lens.games(over=text_of(OVER))
    assert dict(zip(games.game_id, games.studio, strict=True)) == {
        "700": 'East & "West"',
        "g-1": "Südwind",
        "g-2": "Südwind",
    }
    assert set(lens.studios(over=text_of(OVER)).studio_id) == {"st-9", "st-10"}
    assert len(service.queries) == 0


def test_what_the_catalog_does_not_know(service: ForeignService, lens: Client) -> None:
    """A metric and a dimension that only this service has are passed on, each with a warning."""
    with pytest.warns(UserWarning, match="attention_span"), pytest.warns(UserWarning, match="device_tier"):
        frame = lens.query("attention_span", by="device_tier", over=text_of(OVER))
    assert_same(frame, service.truth("attention_span", ["device_tier"], over=OVER), ["device_tier"])


def test_a_field_of_its_own_in_every_row(service: ForeignService, lens: Client) -> None:
    """It is a column, with a warning, and the numbers beside it are right."""
    service.dialect.extra_field = "confidence"
    with pytest.warns(UserWarning, match="confidence"):
        frame = lens.query("revenue", by="platform", over=text_of(OVER))
    assert set(frame.confidence) == {1}
    assert_same(frame.drop(columns="confidence"), service.truth("revenue", ["platform"], over=OVER), ["platform"])


@pytest.mark.parametrize("metric", ["arpu", "conversion", "conversion_ft", "installs_ratio", "session_length"])
def test_rows_without_the_parts_of_a_ratio(service: ForeignService, lens: Client, metric: str) -> None:
    """A service that sends the ratio alone is read; the parts that it does not send are null, not 0."""
    service.dialect.is_terse = True
    frame = lens.query(metric, by="game_id", over=text_of(OVER))
    truth = service.truth(metric, ["game_id"], over=OVER)
    own = ({name: row[name] for name in ("timestamp", "game_id", metric)} for row in truth)
    assert_same(frame[["timestamp", "game_id", metric]], own, ["game_id"])
    assert frame.drop(columns=["timestamp", "game_id", metric]).isna().all(axis=None)


def only_warning(frame: Any) -> str:
    """Return the one warning of a frame's receipt."""
    (text,) = Receipt.of(frame.attrs).warnings
    return text


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("by", [[], ["country_code"], ["country_code", "platform"]], ids=str)
def test_a_metric_under_another_name(service: ForeignService, lens: Client, by: list[str]) -> None:
    """The only number of a row is the metric, under the catalog's name and with a note."""
    service.dialect.renamed = {"user_unique": "players"}
    frame = lens.query("user_unique", by=by, over=text_of(OVER))
    assert_same(frame, service.truth("user_unique", by, over=OVER), by)
    assert only_warning(frame) == "user_unique came in a field called players: it was renamed to user_unique"


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_a_mean_called_mean(service: ForeignService, lens: Client) -> None:
    """`session_length` sent as `mean` alone: the parts that it does not send are null."""
    service.dialect.is_terse, service.dialect.renamed = True, {"session_length": "mean"}
    frame = lens.query("session_length", by="platform", over=text_of(OVER))
    truth = service.truth("session_length", ["platform"], over=OVER)
    own = ({name: row[name] for name in ("timestamp", "platform", "session_length")} for row in truth)
    assert_same(frame[["timestamp", "platform", "session_length"]], own, ["platform"])
    assert "session_length came in a field called mean" in only_warning(frame)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_several_numbers_keep_their_names(service: ForeignService, lens: Client) -> None:
    """Which of them is the metric cannot be known: it is null, and they have the names of the service."""
    service.dialect.renamed = {"revenue": "turnover", "sum": "gross", "mean": "average"}
    frame = lens.query("revenue", by="platform", over=text_of(OVER))
    expected = {(row["timestamp"], row["platform"]): row for row in service.truth("revenue", ["platform"], over=OVER)}
    assert frame["revenue"].isna().all()
    for row in rows_of(frame):
        assert is_close(row["gross"], expected[row["timestamp"], row["platform"]]["sum"])
    assert "revenue came without sum: " in Receipt.of(frame.attrs).warnings[0]


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_weeks_that_begin_on_sunday(service: ForeignService, lens: Client) -> None:
    """They are rows as the service has them, with a note, and nothing is filled in between."""
    service.dialect.sunday = True
    frame = lens.query("revenue", by="platform", over=text_of(OVER), every="week")
    assert_same(frame, service.truth("revenue", ["platform"], over=OVER, every="week"), ["platform"])
    assert {start.weekday() for start in frame.timestamp} == {6}
    assert only_warning(frame) == "the weeks of this service begin on Sunday"
    both = lens.query(["new_users", "session_unique"], by="platform", over=text_of(OVER), every="week")
    assert {start.weekday() for start in both.timestamp} == {6}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_weeks_from_sunday_of_two_requests_are_refused(service: ForeignService, connect: Callable[..., Client]) -> None:
    """Each request has a part of the week that both lie in: the sum of two parts is known for some metrics only."""
    service.dialect.sunday = True
    with pytest.raises(ServiceError, match="cannot be combined"):
        connect(max_days=7).query("revenue", over=text_of(OVER), every="week")


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_one_bucket_stamped_with_its_end(service: ForeignService, lens: Client) -> None:
    """The row of the whole interval has the start of the interval, whatever the service writes."""
    service.dialect.stamps_end = True
    frame = lens.query("revenue", by="platform", over=text_of(OVER), every="all")
    assert_same(frame, service.truth("revenue", ["platform"], over=OVER, every="all"), ["platform"])
    assert "gives the interval another timestamp" in only_warning(frame)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_ids_that_are_numbers(service: ForeignService, lens: Client) -> None:
    """They are text in a frame, and a title finds them."""
    service.dialect.numeric_ids = True
    frame = lens.query("revenue", by="game", over=text_of(OVER))
    assert_same(frame.drop(columns="game"), service.truth("revenue", ["game_id"], over=OVER), ["game_id"])
    assert frame.game.notna().all()
    assert only_warning(frame) == "game_id came as numbers: they were converted to text"
    assert set(lens.games(over=text_of(OVER)).game_id) == {*frame.game_id}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_fractions_of_a_cent(service: ForeignService, lens: Client) -> None:
    """They are kept, with a warning."""
    service.dialect.half_cents = True
    frame = lens.query("revenue", by="platform", over=text_of(OVER), fields="all")
    assert set(frame.revenue_sum_cents % 1) == {0.5}
    assert only_warning(frame) == "sum_cents came with fractions of a cent, which are kept"


def test_the_receipt_calls_it_a_real_service(service: ForeignService, lens: Client) -> None:
    """No header of a sandbox: the provenance is real, with the address."""
    receipt = Receipt.of(lens.query("revenue", over=text_of(OVER)).attrs)
    assert (receipt.provenance.kind, receipt.provenance.url) == ("real", service.address)


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate", "raw deflate"])
def test_every_transfer_of_an_answer(service: ForeignService, lens: Client, framing: str, encoding: str) -> None:
    """Compressed or not, with a length, in chunks, or ended by closing: the same numbers."""
    service.dialect.framings, service.dialect.encodings = (framing,), (encoding,)
    assert_same(lens.query("revenue", over=text_of(OVER)), service.truth("revenue", over=OVER), [])


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("style", foreign_service.Dialect().moments)
def test_every_spelling_of_a_timestamp(service: ForeignService, lens: Client, style: str) -> None:
    """All forms of ISO 8601 are read, in answers and in the available interval."""
    service.dialect.moments = (style,)
    assert lens.available().start == service.start
    assert_same(lens.query("revenue", over=text_of(OVER)), service.truth("revenue", over=OVER), [])
    frame = lens.query("event_count", by=["platform", "build"], over=text_of(OVER))
    assert_same(frame, service.truth("event_count", ["platform", "build"], over=OVER), ["platform", "build"])


def retry_after(style: str) -> dict[str, str]:
    """Return the header that asks to wait for a second, in one of its forms."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    return {"seconds": {"RETRY-after": "1"}, "date": {"retry-AFTER": later}, "none": {}}[style]


@pytest.mark.parametrize("style", ["seconds", "date", "none"])
def test_a_429_is_waited_for(service: ForeignService, lens: Client, style: str) -> None:
    """With Retry-After in both forms and without it, the query succeeds at a later attempt."""
    service.refusals += [RefusalError(429, b"slow down", retry_after(style))] * 2
    frame = lens.query("revenue", over=text_of(OVER))
    assert_same(frame, service.truth("revenue", over=OVER), [])
    assert len(service.queries) == 3
    assert Receipt.of(frame.attrs).retries == 2


def test_a_429_without_end(service: ForeignService, connect: Callable[..., Client]) -> None:
    """A wait beyond the client's patience ends at once, with the time the service asks for."""
    service.refusals.append(RefusalError(429, b"", {"Retry-After": "3600"}))
    with pytest.raises(RateLimited, match="3600"):
        connect(max_wait_s=5).query("revenue", over=text_of(OVER))


BODIES = {
    "own keys": (b'{"problems": [{"code": 7, "why": "shard 12 is cold"}]}', "application/json"),
    "list": (b'["shard 12 is cold"]', "application/json"),
    "page": (b"<html><title>Oops</title><body><h1>shard 12 is cold</h1></body></html>", "text/html"),
    "text": (b"shard 12 is cold\r\n", "text/plain"),
    "empty": (b"", "text/plain"),
    "no text": (b"\xff\xfe\x00shard", "application/octet-stream"),
}


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("shape", BODIES)
@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadQuery), (422, BadQuery), (418, ServiceError), (501, ServiceError)]
)
def test_errors_of_any_shape(
    service: ForeignService, lens: Client, shape: str, status: int, kind: type[Exception]
) -> None:
    """Each status has its exception, whatever the body is."""
    body, media = BODIES[shape]
    service.refusals.append(RefusalError(status, body, media=media))
    with pytest.raises((kind, PartialResult)) as caught:
        lens.query("revenue", over=text_of(OVER))
    assert str(status) in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_unknown_key(service: ForeignService, connect: Callable[..., Client]) -> None:
    """A 401 in the service's own words is an `AuthError` that does not show the key."""
    with pytest.raises(AuthError) as caught:
        connect(api_key="sesame-of-nobody").query("revenue", over=text_of(OVER))
    assert "sesame" not in str(caught.value)
    assert not service.queries


def test_a_metric_that_it_does_not_have(service: ForeignService, lens: Client) -> None:
    """A 404 names the metric."""
    service.dialect.missing = ("ad_impressions_per_session",)
    with pytest.raises(ServiceError, match="404"):
        lens.query("ad_impressions_per_session", over=text_of(OVER))


def test_availability(service: ForeignService, lens: Client) -> None:
    """A time range beyond the available interval raises, or is cut to it."""
    with pytest.raises(NotYetAvailable):
        lens.query("revenue", over="2026-11-18/2026-11-25")
    frame = lens.query("revenue", over="2026-11-18/2026-11-25", when_unavailable="clip")
    covered = (datetime(2026, 11, 18, tzinfo=UTC), foreign_service.END)
    assert_same(frame, service.truth("revenue", over=covered), [])
    assert Receipt.of(frame.attrs).clipped


def test_waiting_for_data(connect: Callable[..., Client]) -> None:
    """With "wait" the available interval is asked until it has grown far enough."""
    with foreign_service.foreign_service() as service:
        last = service.ends[0]
        service.ends = [last - DAY, last - DAY, last]
        lens = connect(metrics_url=service.address, refresh_s=0.2)
        frame = lens.query("revenue", over="2026-11-20T00:00Z/2026-11-20T10:00Z", when_unavailable="wait", deadline_s=9)
        over = (last.replace(hour=0), last.replace(hour=10))
        assert_same(frame, service.truth("revenue", over=over), [])
        assert service.ends == [last]


def test_a_cache(service: ForeignService, connect: Callable[..., Client], tmp_path: Path) -> None:
    """Settled days are not asked again, by another client neither, and have the same numbers."""
    first = connect(api_key=KEY, cache=tmp_path).query("revenue", by="country_code", over=text_of(OVER))
    service.seen.clear()
    again = connect(api_key=KEY, cache=tmp_path).query("revenue", by="country_code", over=text_of(OVER))
    assert not service.queries
    assert rows_of(first) == rows_of(again)


def test_restated_days(connect: Callable[..., Client], tmp_path: Path) -> None:
    """A refresh shows which past day changed, and by how much."""
    with foreign_service.foreign_service() as service:
        lens = connect(metrics_url=service.address, cache=tmp_path)
        frame = lens.query("revenue", over=text_of(OVER))
        lost = next(fact for fact in service.facts if fact.values["category"] == "business" and fact.at >= OVER[0])
        service.facts.remove(lost)
        fresh = lens.refresh(frame)
        assert_same(fresh, service.truth("revenue", over=OVER), [])
        moved = lens.restatements("revenue").set_index("field").moved
        assert moved["revenue"] == pytest.approx(-lost.cents / 100)


def test_the_same_query_sends_only_what_failed(
    service: ForeignService, connect: Callable[..., Client], tmp_path: Path
) -> None:
    """A part that fails is a gap, and the same query asks for that part alone."""
    lens = connect(cache=tmp_path)
    service.refusals.append(RefusalError(501, b"<h1>no</h1>", media="text/html"))
    frame = lens.query("revenue", over=text_of(OCTOBER), on_error="gaps")
    assert len(Receipt.of(frame.attrs).gaps) == 1
    service.seen.clear()
    whole = lens.query("revenue", over=text_of(OCTOBER))
    assert_same(whole, service.truth("revenue", over=OCTOBER), [])
    assert len(service.queries) == 1


def test_a_recording_replays(service: ForeignService, connect: Callable[..., Client], tmp_path: Path) -> None:
    """Answers in its words are recorded, and replayed with the same frames and no request."""

    def asked(lens: Client) -> list[Any]:
        frames = [lens.query("revenue", by=["game", "platform"], over=text_of(OVER)), lens.games(over=text_of(OVER))]
        return [*frames, lens.retention(days=[1], over=text_of(OVER))]

    live = asked(connect(record=tmp_path))
    service.seen.clear()
    with Client(replay=tmp_path) as lens:
        replayed = asked(lens)
    assert not service.seen
    assert [frame.to_dict("list") for frame in live] == [frame.to_dict("list") for frame in replayed]


def test_the_command_query(service: ForeignService, run_command: Callable[..., Result], tmp_path: Path) -> None:
    """`gamelens query` writes the service's numbers."""
    words = ("query", "revenue", "--by", "platform", "--over", text_of(OVER), "--every", "all")
    result = run_command(*words, "--out", tmp_path / "revenue.csv")
    assert result.exit_code == 0, result.output
    truth = {row["platform"]: row["sum"] for row in service.truth("revenue", ["platform"], over=OVER, every="all")}
    with (tmp_path / "revenue.csv").open(encoding="utf-8", newline="") as file:
        assert {row["platform"]: float(row["revenue"]) for row in csv.DictReader(file)} == pytest.approx(truth)


def test_the_command_doctor(service: ForeignService, run_command: Callable[..., Result]) -> None:
    """`gamelens doctor` finds the service, the key and the clock fine, and names what differs from the catalog."""
    result = run_command("doctor", "--json")
    assert result.exit_code == 0, result.output
    checks = {check["about"]: check for check in json.loads(result.stdout)}
    assert {name: checks[name]["mark"] for name in ("service", "key", "clock", "rate")} == dict.fromkeys(
        ("service", "key", "clock", "rate"), "ok"
    )
    assert "attention_span" in checks["metrics"]["says"]
    assert "device_tier" in checks["dimensions"]["says"]
    assert "ab_id" in checks["dimensions"]["says"]


@pytest.mark.wide
def test_the_command_health(run_command: Callable[..., Result]) -> None:
    """`gamelens health` judges the last complete day of every game."""
    result = run_command("health", "--json")
    assert result.exit_code == 4, result.output  # its data ended long ago
    assert "2026-11-19" in result.stdout


def test_threads_share_one_client(service: ForeignService, lens: Client) -> None:
    """Concurrent queries of one client get their own answers."""
    frames: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda name=name: frames.update({name: lens.query(name, over=text_of(OVER))}))
        for name in ("revenue", "event_count", "user_unique", "session_unique")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, frame in frames.items():
        assert_same(frame, service.truth(name, over=OVER), [])
    assert len(frames) == 4
