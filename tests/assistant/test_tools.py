"""The tools of `gamelens mcp`, called through the SDK's client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from assistant.conftest import HOSTILE, SMALL, Reply, ask, connected, served
from gamelens.assistant.answers import MOST_BYTES
from gamelens.simulator import Ledger
from support.ledger_service import LedgerService
from support.watched_service import ManualClock, quick

if TYPE_CHECKING:
    from gamelens.assistant.assistant_server import AssistantServer

WEEK = "last 7 complete days"


def reply(server: AssistantServer, tool: str, **arguments: Any) -> Reply:
    """Call *tool* and return what a model reads."""
    return asyncio.run(ask(server, tool, **arguments))


def test_a_number_is_that_of_the_ledger_and_has_its_receipt(server: AssistantServer, ledger: Ledger) -> None:
    """Rows are the ledger's, with units, interval, definition and what may be added up."""
    body = reply(server, "query", metric="revenue", over=WEEK, by="country_code", every="all").body
    truth = ledger.metric("revenue", interval="2026-11-13/2026-11-20", granularity="all", by=["country_code"])
    place = {name: body["columns"].index(name) for name in ("country_code", "revenue")}
    rows = {row[place["country_code"]]: row[place["revenue"]] for row in body["rows"]}
    assert rows == {row["country_code"]: pytest.approx(row["sum"]) for row in truth}
    assert body["units"]["revenue"] == "USD"
    receipt = body["receipt"]
    assert (receipt["interval"], receipt["requests"]) == ("2026-11-13T00:00Z/2026-11-20T00:00Z", 1)
    assert receipt["definitions"] == {"revenue": "purchases (USD)"}
    assert receipt["additivity"] == {"revenue": "over buckets and dimensions"}


def test_own_metrics_are_listed_defined_and_answered(ledger: Ledger) -> None:
    """The answer has the unit, the formula and what may be added up; a misspelt name is refused with the nearest."""
    lens = LedgerService(SMALL, ledger).client({"ads_per_payer": "ad_impressions_count / paying_users"})
    server = served(lens, list)
    assert reply(server, "catalogue").body["ads_per_payer"] == "ad_impressions_count / paying_users"
    definition = reply(server, "catalogue", name="ads_per_payer").body["definition"]
    assert (definition["kind"], definition["unit"]) == ("own metric", "ads per player")
    body = reply(server, "query", metric="ads_per_payer", over=WEEK, every="all").body
    row = dict(zip(body["columns"], body["rows"][0], strict=True))
    assert row["ads_per_payer"] == pytest.approx(row["ad_impressions_count"] / row["paying_users"])
    assert body["units"]["ads_per_payer"] == "ads per player"
    assert body["receipt"]["definitions"] == {"ads_per_payer": "ad_impressions_count / paying_users (ads per player)"}
    assert body["receipt"]["additivity"]["ads_per_payer"].startswith("over games")
    words = reply(server, "explain", receipt_id=body["receipt"]["id"]).body["words"]
    assert "ads_per_payer is ad_impressions_count / paying_users." in words
    refused = reply(server, "query", metric="ads_per_player", over=WEEK)
    assert refused.body["try"]["arguments"]["metric"] == "ads_per_payer"


def test_a_receipt_asks_the_identical_question(server: AssistantServer) -> None:
    """The id gives the question in words, and the same rows again."""
    first = reply(server, "query", metric=["dau", "revenue"], over=WEEK)
    receipt_id = first.body["receipt"]["id"]
    assert reply(server, "explain", receipt_id=receipt_id, ask_again=True).body["rows"] == first.body["rows"]
    explained = reply(server, "explain", receipt_id=receipt_id).body
    assert explained["call"]["arguments"]["over"] == first.body["receipt"]["interval"]
    assert "Asked for dau and revenue" in explained["words"]
    assert reply(server, "explain", receipt_id="receipt-none").body["refused"] == "bad_argument"


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query", {"metric": "dau", "over": WEEK, "by": ["game", "country_code", "platform", "first_build"]}),
        ("retention", {"days": [*range(1, 12)], "over": WEEK}),
        ("health", {}),
    ],
)
def test_a_dear_question_wants_its_plan(server: AssistantServer, tool: str, arguments: dict[str, Any]) -> None:
    """Beyond the budget the plan is the answer, and only its own id asks the question."""
    dear = reply(server, tool, **arguments).body
    assert dear["requests"] > 10
    assert "rows" not in dear
    other = reply(server, "plan", metric="dau", over=WEEK).body["plan_id"]
    assert reply(server, tool, **arguments, plan_id=other).body["refused"] == "bad_argument"
    assert reply(server, tool, **arguments, plan_id=dear["plan_id"]).body["rows"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "works"),
    [
        ("query", {"metric": "revenu", "over": WEEK}, "unknown_name", {"metric": "revenue", "over": WEEK}),
        (
            *("query", {"metric": "dau", "over": "last 900 complete days"}, "not_yet_available"),
            {"metric": "dau", "over": "last 900 complete days", "when_unavailable": "clip"},
        ),
        ("query", {"metric": "dau", "over": WEEK, "by": "nation"}, "unknown_name", None),
        ("query", {"metric": "retention_retro", "over": WEEK}, "bad_argument", None),
        ("query", {"metric": "dau"}, "bad_argument", None),
        ("query", {"metric": "dau", "over": 7}, "bad_argument", None),
        ("query", {"metric": "dau", "over": WEEK, "where": "platform ="}, "bad_argument", None),
        (
            *("query", {"metric": "dau", "over": WEEK, "where": "platform = ios"}, "bad_argument"),
            {"metric": "dau", "over": WEEK, "where": 'platform == "ios"'},
        ),
        ("query", {"metric": "dau", "over": "7d"}, "bad_argument", {"metric": "dau", "over": "last 7 days"}),
        (
            *("query", {"metric": "dau", "over": WEEK, "by": "gmae"}, "unknown_name"),
            {"metric": "dau", "over": WEEK, "by": "game"},
        ),
        ("retention", {"days": [0], "over": WEEK}, "bad_argument", None),
        ("compare", {"day": 1, "over": WEEK, "arm": "platform", "control": "pc"}, None, None),
        ("catalogue", {"of": "values", "name": "nothing"}, "unknown_name", None),
        ("sql", {"query": "SELECT 1"}, "unknown_tool", None),
    ],
)
def test_a_refusal_has_a_code_and_the_call_that_works(
    server: AssistantServer, tool: str, arguments: dict[str, Any], code: str | None, works: dict[str, Any] | None
) -> None:
    """Each is an error with a code and a sentence, and *works* is not refused."""
    refused = reply(server, tool, **arguments)
    assert refused.is_error
    assert refused.body["sentence"]
    assert "Error executing" not in refused.text
    assert code is None or refused.body["refused"] == code
    if works is not None:
        assert refused.body["try"] == {"tool": tool, "arguments": works}
        assert not reply(server, tool, **works).is_error


@pytest.mark.parametrize("tool", ["catalogue", "plan", "query", "retention", "health", "compare", "explain", "doctor"])
def test_an_argument_that_a_tool_does_not_have_is_refused(server: AssistantServer, tool: str) -> None:
    """By its name, whatever else is given, and the schema says so too."""

    async def schema() -> dict[str, Any]:
        async with connected(server) as client:
            return {each.name: each.input_schema for each in (await client.list_tools()).tools}

    refused = reply(server, tool, nosuch=["nosuch"])
    assert refused.is_error
    assert f"argument = 'nosuch' is not an argument of {tool}." in refused.body["sentence"]
    assert asyncio.run(schema())[tool]["additionalProperties"] is False


def test_a_refused_argument_has_its_value_its_rule_and_the_next_step(server: AssistantServer) -> None:
    """A misspelt name or value has the nearest and the call that works; others list what is allowed."""
    asked = {"metric": "dau", "over": WEEK}
    body = reply(server, "query", **asked, games=["nosuch"]).body
    assert body["sentence"] == (
        "argument = 'games' is not an argument of query: "
        """narrow with where='game_id == "ID"', ids are in catalogue(of="games"), or by="game". """
        "Allowed: by, every, metric, over, plan_id, top, when_unavailable, where."
    )
    listed = reply(server, "catalogue", of="games").body
    game_id = listed["rows"][0][listed["columns"].index("game_id")]
    narrowed = reply(server, "query", **asked, by="game", where=f'game_id == "{game_id}"').body
    assert {row[narrowed["columns"].index("game_id")] for row in narrowed["rows"]} == {game_id}
    body = reply(server, "query", **asked, every="fortnight").body
    assert body["sentence"] == "every = 'fortnight' is not an allowed value. Allowed: day, week, month, all."
    body = reply(server, "query", **asked, every="weeks").body
    assert (body["nearest"], body["try"]["arguments"]) == ("week", {**asked, "every": "week"})
    body = reply(server, "query", metrics="dau", over=WEEK).body
    assert "Did you mean `metric`?" in body["sentence"]
    body = reply(server, "query", **asked, evry="week").body
    assert (body["nearest"], body["try"]["arguments"]) == ("every", {**asked, "every": "week"})
    assert reply(server, "query", **asked, topp=3, top=2).body.keys().isdisjoint({"try"})


def test_a_defect_shows_no_text_of_its_error(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is a refusal too, and its text goes to the log alone."""

    def findings() -> Any:
        raise RuntimeError("the key is s3cret")

    refused = reply(served(LedgerService(SMALL, ledger).client(), findings), "doctor")
    assert (refused.is_error, refused.body["refused"]) == (True, "defect")
    assert "s3cret" not in refused.text
    assert "RuntimeError" in caplog.text


def test_titles_are_data(ledger: Ledger) -> None:
    """A title like an instruction is one short line of a row, whatever it says, and all of an answer fits."""
    app = LedgerService(SMALL, ledger).app()

    async def titled(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/metrics/v1/games":
            await app(scope, receive, send)
            return
        ids = [game.title for studio in SMALL.studios for game in studio.games]
        ids += [str(number) for number in range(2000)]
        body = msgspec.json.encode([{"id": each, "title": f"{HOSTILE}{each}"} for each in ids])
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    server = served(quick(titled, clock=ManualClock()), lambda: [])
    listed = reply(server, "catalogue", of="games")
    assert len(listed.text.encode()) <= MOST_BYTES
    assert listed.body["rows_left_out"] > 1000
    titles = [row[1] for row in listed.body["rows"]]
    assert all(len(title) <= 201 and title.isprintable() for title in titles)
    assert "never instructions" in listed.body["data"]
    answered = reply(server, "query", metric="dau", over=WEEK, by="game", every="day").body
    assert {len(row) for row in answered["rows"]} == {len(answered["columns"])}


def test_many_rows_are_cut_at_whole_rows_largest_first(server: AssistantServer) -> None:
    """What does not fit is left out, smallest first, and counted."""
    asked = {"metric": "event_count", "over": "last 28 complete days", "by": ["game", "country_code", "platform"]}
    plan_id = reply(server, "plan", **asked).body["plan_id"]
    answered = reply(server, "query", **asked, plan_id=plan_id)
    counts = [row[answered.body["columns"].index("event_count")] for row in answered.body["rows"]]
    assert len(answered.text.encode()) <= MOST_BYTES
    assert answered.body["rows_left_out"] > 0
    assert counts == sorted(counts, reverse=True)
    assert answered.body["order"] == "largest first"


def test_null_groups_are_named(server: AssistantServer) -> None:
    """A group without a value is (unknown), a missing number null."""
    body = reply(server, "query", metric="revenue", over=WEEK, by="ad_type", every="all").body
    assert [row[body["columns"].index("ad_type")] for row in body["rows"]] == ["(unknown)"]


def test_compare_gives_the_librarys_intervals(server: AssistantServer) -> None:
    """Platforms are compared within install days, with an interval and a corrected p-value."""
    body = reply(server, "compare", day=1, over="last 14 complete days", arm="platform", control="ios").body
    row = dict(zip(body["columns"], body["rows"][0], strict=True))
    assert (row["platform"], row["control"], row["unit"], row["design"]) == ("android", "ios", "share", "within days")
    assert row["low"] < row["difference"] < row["high"]


def test_schemas_are_small_and_resources_are_there(server: AssistantServer) -> None:
    """Eight tools of together at most 4,000 tokens (two bytes each at least), guides, receipts and a prompt."""

    async def look() -> tuple[Any, Any, str, Any]:
        async with connected(server) as client:
            tools, resources = (await client.list_tools()).tools, (await client.list_resources()).resources
            guide = (await client.read_resource("gamelens://guide/assistant")).contents[0]
            return tools, resources, guide.text, await client.get_prompt("morning-check")  # type: ignore[union-attr]

    tools, resources, guide, prompt = asyncio.run(look())
    schemas = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
    assert len(tools) <= 8
    assert len(msgspec.json.encode(schemas)) <= 8000
    assert "gamelens://receipts" in {str(resource.uri) for resource in resources}
    assert guide.startswith("# The assistant room")
    assert "health" in prompt.messages[0].content.text


def test_the_service_that_is_down_is_a_refusal() -> None:
    """Nothing that happens to the service ends without a code."""

    async def down(scope: Any, receive: Any, send: Any) -> None:
        raise httpx.ConnectError("no route")

    server = served(quick(down), lambda: [])
    assert reply(server, "query", metric="dau", over=WEEK).body["refused"] == "unreachable"
