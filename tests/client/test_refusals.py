"""What a query, its plan and retention refuse: the error names the value, the rule, and what to do instead.

A row is the arguments and the words that the error must have. Only the available interval and names are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, NotAdditive, NotYetAvailable
from gamelens.wire.filters import dim
from support.scripted_service import Script

PAIR = ["game", "country_code"]
QUARTER = "2026-08-22/P90D"
RANGES = 'must be "last N complete days" or "last N days"'
TOP_RANGE = "must be a whole number from 1 to 30000"
TOP_FORM = 'must be a number, or a dimension in by with a number: {"country_code": 5}'
EXPRESSION = 'must be an expression such as dim.platform == "ios", or an object as the service documents it'
COMPARISON = 'must compare dimensions with text, such as platform == "ios" and country_code in ["US", "NA"]'
NO_AGE = "must be whole numbers of days after install, 1 to 36,500"
NO_VALUE = "'ad_type' does not apply to retention_retro, whose players have no such value"
UNCUT = 'with a Client(max_days=...) that does not cut it, or every="day", "week" or "month", one number for each'
ONE_BUCKET = 'or every="all": the rest of one bucket takes one more request'
IN_A_GAME = "the rest of each game or studio takes one more request"

HAS = "the service has 2026-08-22T00:00Z/2026-11-20T11:00Z"

Row = tuple[dict[str, Any], str]

BAD: list[Row] = [
    # metrics
    ({"metric": []}, "metric = [] must name at least one metric, and none twice"),
    (
        {"metric": ["revenue", "revenue"]},
        "metric = ['revenue', 'revenue'] must name at least one metric, and none twice",
    ),
    ({"metric": 7}, "metric = 7 must be one or more strings"),
    ({"metric": "revenu"}, "metric = 'revenu' is not a metric. Did you mean `revenue`?"),
    ({"metric": "arpdua"}, "metric = 'arpdua' is not a metric. Did you mean `arpdau`?"),
    ({"metric": "stickyness"}, "is not a metric. Did you mean `stickiness`?"),
    ({"metric": "iap_revenue"}, "is not a metric. Did you mean `revenue`?"),  # not ad_revenue
    ({"metric": "installs"}, "is not a metric. Did you mean `new_users`?"),  # not installs_ratio
    ({"metric": "retention"}, "metric = 'retention' is not a metric. Did you mean `lens.retention()`?"),
    ({"metric": "retention_retr", "since_days_ago": 1}, "is not a metric. Did you mean `retention_retro`?"),
    # dimensions and scopes
    ({"by": ["game", "game_id"]}, "by = ['game', 'game_id'] must not name a dimension twice"),
    ({"by": ["platform", "platform"]}, "by = ['platform', 'platform'] must not name a dimension twice"),
    ({"by": "platfrom"}, "by = 'platfrom' is not a dimension. Did you mean `platform`?"),
    ({"by": "gmae"}, "by = 'gmae' is not a dimension. Did you mean `game`?"),
    ({"by": "game_di"}, "by = 'game_di' is not a dimension. Did you mean `game_id`?"),
    ({"by": "stduio"}, "by = 'stduio' is not a dimension. Did you mean `studio`?"),
    ({"games": 1001}, "games = 1001 must be one or more strings"),
    ({"games": [1001]}, "games = 1001 must be one or more strings"),
    ({"games": ["1001", None]}, "games = None must be one or more strings"),
    ({"games": []}, "games = [] is empty, so that nothing would be counted: name games, or leave it out for all"),
    ({"studios": ()}, "studios = [] is empty, so that nothing would be counted: name studios, or leave it out for all"),
    # filters
    ({"where": True}, f"where = True {EXPRESSION}"),
    ({"where": [dim.platform == "ios"]}, EXPRESSION),
    ({"where": dim.platform}, f"where = dim.platform {EXPRESSION}"),
    ({"where": {"plattform": "ios"}}, "where = 'plattform' is not a dimension. Did you mean `platform`?"),
    ({"where": ""}, f"where = '' {COMPARISON}"),
    ({"where": "platform"}, f"where = 'platform' {COMPARISON}"),
    ({"where": "platform = 'ios'"}, f'{COMPARISON}. Did you mean `platform == "ios"`?'),
    ({"where": "platform > 'ios'"}, COMPARISON),
    ({"where": "build == 2"}, COMPARISON),
    ({"where": "f('x')"}, COMPARISON),
    ({"where": "a in []"}, COMPARISON),
    ({"where": "a is 'x'"}, COMPARISON),
    ({"where": "a == null"}, COMPARISON),
    # buckets
    ({"every": "hour"}, "every = 'hour' is not allowed. Allowed: day, week, month, all"),
    (
        {"metric": "mau", "every": "day"},
        "every = 'day' does not apply to mau, which is counted by month: leave out every",
    ),
    (
        {"metric": "stickiness", "every": "all"},
        "does not apply to stickiness, which is counted by month: leave out every",
    ),
    ({"metric": "wau", "every": "month"}, "does not apply to wau, which is counted by week: leave out every"),
    ({"metric": ["wau", "mau"]}, "must use the same buckets (wau by week, mau by month): query each separately"),
    (
        {"every": "week", "over": "2026-11-03/P2D", "whole_buckets": True},
        "no whole week lies in 2026-11-03T00:00Z/2026-11-05T00:00Z, so ask for a longer time range",
    ),
    # top, other, check
    ({"top": 5}, "top = 5 needs a dimension in by"),
    ({"by": "platform", "top": 0}, f"top = 0 {TOP_RANGE}"),
    ({"by": "platform", "top": 30_001}, f"top = 30001 {TOP_RANGE}"),
    ({"by": "platform", "top": "3"}, f"top = '3' {TOP_RANGE}"),
    ({"by": "platform", "top": 3.0}, f"top = 3.0 {TOP_RANGE}"),
    ({"by": "platform", "top": True}, f"top = True {TOP_RANGE}"),
    ({"by": PAIR, "top": {}}, f"top = {{}} {TOP_FORM}"),
    ({"by": PAIR, "top": {"game": 2, "country_code": 5}}, f"top = {{'game': 2, 'country_code': 5}} {TOP_FORM}"),
    ({"by": PAIR, "top": {"country_code": None}}, TOP_FORM),
    ({"by": PAIR, "top": {"country_code": 0}}, f"top = {{'country_code': 0}} {TOP_RANGE}"),
    ({"by": PAIR, "top": {"country_code": True}}, TOP_RANGE),
    ({"by": PAIR, "top": {"countrycode": 5}}, "must name a dimension of by. Did you mean `country_code`?"),
    ({"by": PAIR, "top": {"platform": 2}}, "must name a dimension of by. Allowed: game, country_code"),
    ({"by": "platform", "other": True}, "other = True needs top: it adds what top leaves out"),
    ({"by": "platform", "top": 2, "check": True}, "check = True needs all values: leave out top"),
    # retention and days since install
    ({"since_days_ago": 7}, "since_days_ago = 7 does not apply to revenue"),
    (
        {"metric": "retention_retro", "by": "game", "since_days_ago": "7"},
        "= '7' must be a whole number of days, 1 or more",
    ),
    ({"metric": "retention_retro", "by": "game", "since_days_ago": 0}, "= 0 must be a whole number of days, 1 or more"),
    ({"metric": "retention_retro", "by": "game"}, "since_days_ago is missing: retention_retro needs it"),
    (
        {"metric": "retention_retro", "by": "game", "every": "week", "since_days_ago": 1},
        "granularity = 'week' must be day for retention_retro. Allowed: day",
    ),
    ({"metric": "retention_retro", "by": [*PAIR, "ad_type"], "since_days_ago": 1}, NO_VALUE),
    ({"metric": "d1_retention", "by": "ad_type"}, NO_VALUE),
    ({"metric": "d1_retention", "by": "platform", "top": 1}, "top = 1 does not apply to d1_retention: leave it out"),
    (
        {"metric": "d1_retention", "since_days_ago": 2},
        "since_days_ago = 2 does not apply to d1_retention: leave it out",
    ),
    ({"metric": "d1_retention", "by": "platform", "check": True}, "check = True does not apply to d1_retention"),
    ({"days": 1, "by": "ad_type"}, NO_VALUE),
    ({"days": []}, "days = [] must name at least one age, and none twice"),
    ({"days": [1, 1]}, "days = [1, 1] must name at least one age, and none twice"),
    ({"days": 0}, f"days = 0 {NO_AGE}"),
    ({"days": -1}, f"days = -1 {NO_AGE}"),
    ({"days": [1.5]}, f"days = 1.5 {NO_AGE}"),
    ({"days": [True]}, f"days = True {NO_AGE}"),
    ({"days": 10**9}, f"days = 1000000000 {NO_AGE}"),
    ({"days": None}, f"days = None {NO_AGE}"),
    # time ranges
    ({"over": "the last week"}, f"over = 'the last week' {RANGES}"),
    ({"over": "last 0 days"}, "over = 'last 0 days' must ask for at least 1"),
    ({"over": "last 0 complete days"}, "over = 'last 0 complete days' must ask for at least 1"),
    ({"over": "last 99999 months"}, "over = 'last 99999 months' reaches back before the year 1"),
    ({"over": "last 99999 complete months"}, "reaches back before the year 1"),
    ({"over": "Nova 2026"}, f"over = 'Nova 2026' {RANGES}"),
    ({"over": "ma 2026"}, RANGES),
    ({"over": "November 0"}, RANGES),
    ({"over": "next week"}, RANGES),
    ({"over": "2026-11-31"}, f"over = '2026-11-31' {RANGES}"),
    ({"over": "2026-13-01"}, RANGES),
    ({"over": "2026-11-03/2026-11-03"}, f"over = '2026-11-03/2026-11-03' {RANGES}"),
    ({"over": ("2026-11-03", "2026-11-01")}, f"over = ('2026-11-03', '2026-11-01') {RANGES}"),
    ({"over": ("2026-11-03",)}, f"over = ('2026-11-03',) {RANGES}"),
    ({"over": 7}, f"over = 7 {RANGES}"),
    ({"over": None}, f"over = None {RANGES}"),
    ({"over": datetime(2026, 11, 1, 15, tzinfo=UTC)}, "is a moment, not a day: pass its .date(), or an Interval"),
    # words and numbers that say how the query is run
    ({"sort": "revenu"}, "sort = 'revenu' is not allowed. Did you mean `revenue`?"),
    ({"fields": "every"}, "fields = 'every' is not allowed. Allowed: all"),
    ({"to": "Pandas"}, "to = 'Pandas' is not allowed. Did you mean `pandas`?"),
    ({"to": "numpy"}, "to = 'numpy' is not allowed. Allowed: pandas, arrow, polars"),
    ({"to": ""}, "to = '' is not allowed. Allowed: pandas, arrow, polars"),
    ({"on_error": "ask"}, "on_error = 'ask' is not allowed. Allowed: raise, gaps"),
    ({"when_unavailable": "ask"}, "when_unavailable = 'ask' is not allowed. Allowed: raise, clip, wait"),
    ({"when_unavailable": ""}, "when_unavailable = '' is not allowed. Allowed: raise, clip, wait"),
    ({"deadline_s": "5"}, "deadline_s = '5' must be a number of seconds"),
    ({"deadline_s": float("nan")}, "deadline_s = nan must be a number of seconds"),
    ({"deadline_s": True}, "deadline_s = True must be a number of seconds"),
]

NOT_ADDITIVE: list[Row] = [
    # games are pooled (Wire 4.14, Adding up)
    (
        {"metric": "retention_retro", "since_days_ago": 7},
        "query(\"retention_retro\", by=['game']), a share for each game, or retention(7), pooled by installs",
    ),
    (
        {"metric": "retention_retro", "by": "platform", "since_days_ago": 7},
        "by=['platform', 'game']), a share for each game, or retention(7, by=['platform']), pooled by installs",
    ),
    (
        {"metric": "retention_retro", "by": "studio", "since_days_ago": 7},
        "by=['studio', 'game']), a share for each game",
    ),
    # buckets are cut by `max_days` of 5
    ({"metric": "user_unique", "over": QUARTER, "every": "all"}, f'Use query("user_unique", every="all") {UNCUT}'),
    ({"metric": "user_unique", "over": QUARTER, "every": "week"}, f'Use query("user_unique", every="week") {UNCUT}'),
    ({"metric": "arpu", "over": QUARTER, "every": "all"}, f'Use query("arpu", every="all") {UNCUT}'),
    (
        {"metric": "session_length", "over": QUARTER, "every": "all"},
        f'Use query("session_length", every="all") {UNCUT}',
    ),
    ({"metric": "brand_new", "over": QUARTER, "every": "all"}, f'Use query("brand_new", every="all") {UNCUT}'),
    (
        {"metric": "mau", "over": QUARTER},
        'user_unique cannot be added up over pieces. Use query("user_unique", every="month") with a Client(max_',
    ),
    # the rows do not add up to their total
    (
        {"metric": "user_unique", "by": "platform", "top": 2, "other": True},
        f"Use query(\"user_unique\", by=['platform']) without other=True, {ONE_BUCKET}",
    ),
    ({"metric": "arpdau", "by": "country_code", "top": 1, "other": True}, f"without other=True, {ONE_BUCKET}"),
    (
        {"metric": "user_unique", "by": PAIR, "top": 2, "other": True},
        f'without other=True, or every="all" and top={{"country_code": 2}}: {IN_A_GAME}',
    ),
    (
        {"metric": "conversion", "by": ["game", "platform"], "top": 1, "other": True},
        f'without other=True, or every="all" and top={{"platform": 1}}: {IN_A_GAME}',
    ),
    (
        {"metric": "user_unique", "by": ["platform", "country_code"], "top": {"platform": 1}, "other": True},
        "Use query(\"user_unique\", by=['platform', 'country_code']) without other=True",
    ),
    ({"metric": "user_unique", "by": "platform", "check": True}, "by=['platform']) without check=True"),
    (
        {"metric": "user_unique", "by": ["game", "platform"], "check": True},
        "by=['game', 'platform']) without check=True",
    ),
    ({"metric": "session_length", "by": "game", "check": True}, "session_length cannot be added up over pieces"),
    ({"metric": "conversion", "by": "game", "check": True}, "conversion cannot be added up over pieces"),
]

NOT_YET: list[Row] = [
    (
        {"over": ("2026-11-19", "2026-11-20")},
        f'is not all available: {HAS}. Ask for less, or pass when_unavailable="clip" or "wait"',
    ),
    (
        {"over": "2026-08-01", "when_unavailable": "wait"},
        f"/2026-08-02T00:00Z is not available at all: {HAS} and nothing earlier. Ask for a later interval",
    ),
    ({"days": 1, "over": "2026-11-25"}, f'{HAS}. Ask for another interval, or pass when_unavailable="wait"'),
]

ROWS = [
    *((BadQuery, *row) for row in BAD),
    *((NotAdditive, *row) for row in NOT_ADDITIVE),
    *((NotYetAvailable, *row) for row in NOT_YET),
]


@pytest.fixture
def lens(make_lens: Callable[..., Client]) -> Client:
    """Return a client that sends requests of five days at most."""
    return make_lens(max_days=5, cache=False)


@pytest.mark.parametrize(("error", "arguments", "words"), ROWS, ids=lambda it: str(it) if isinstance(it, dict) else "")
def test_a_refusal_says_what_to_do_instead(
    lens: Client, script: Script, error: type[GamelensError], arguments: dict[str, Any], words: str
) -> None:
    """Before a request for rows, by `plan` as by `query`; a plan does not ask for names that it does not know."""
    asked: dict[str, Any] = {"over": "2026-11-01/P1W"} | arguments
    asked |= {} if "days" in asked else {"metric": "revenue"} | asked
    with pytest.raises(error) as refused:
        (lens.retention if "days" in asked else lens.query)(**asked)
    assert words in str(refused.value)
    if {*script.paths} <= {"/metrics/v1/interval"} and "days" not in asked:
        with pytest.raises(error) as unplanned:
            lens.plan(**asked)
        assert str(unplanned.value) == str(refused.value)
    elif "days" not in asked:
        with pytest.raises(BadQuery, match="is not known here, so it cannot be planned; query") as unknown:
            lens.plan(**asked)
        assert unknown.value.did_you_mean == getattr(refused.value, "did_you_mean", None)
    assert {*script.paths} <= {f"/metrics/v1/{name}" for name in ("interval", "metrics", "dimensions")}


def test_others_that_no_query_has_are_not_advised(lens: Client) -> None:
    """A share of retention has no rest in one bucket either."""
    with pytest.raises(NotAdditive) as refused:
        lens.query("retention_retro", by=PAIR, over=QUARTER, top=1, other=True, since_days_ago=1)
    assert refused.value.use == "query(\"retention_retro\", by=['game', 'country_code']) without other=True"


@pytest.mark.parametrize("name", ["sum", "event_count", "timestamp"])
def test_a_dimension_called_like_a_field_is_refused(lens: Client, script: Script, name: str) -> None:
    """A row is a JSON object, which has one value for each name."""
    script.dimensions.append(name)
    with pytest.raises(BadQuery, match=f"by = '{name}' is also a field of revenue: a row cannot hold both"):
        lens.query("revenue", by=name, over=QUARTER)


@pytest.mark.parametrize("max_days", [0, -1])
def test_max_days_is_at_least_one(make_lens: Callable[..., Client], max_days: int) -> None:
    """A client that could ask for nothing is refused when it is made, as one with a word that is not allowed."""
    with pytest.raises(BadQuery, match=f"max_days = {max_days} must be"):
        make_lens(max_days=max_days)
    with pytest.raises(BadQuery, match=r"when_unavailable = 'ask' is not allowed\. Allowed: raise, clip, wait"):
        make_lens(when_unavailable="ask")


def test_a_list_is_refused_as_a_query_is(lens: Client) -> None:
    """A list over a range that is not available, and restatements of a metric that there is not."""
    with pytest.raises(NotYetAvailable, match="is not available at all"):
        lens.studios(over="2027-01-01")
    with pytest.raises(BadQuery, match=r"metric = 'revenu' is not a metric\. Did you mean `revenue`\?"):
        lens.restatements("revenu")


def test_a_sort_by_a_column_that_only_the_answer_can_tell_is_refused_after_it(lens: Client, script: Script) -> None:
    """Two fields of a metric that the catalog does not know are columns of their own names."""
    fields = {"one": 6, "two": 7}
    script.answers["brand_new"] = lambda _: [{"result": fields, "timestamp": "2026-11-01T00:00:00.000Z"}]
    with pytest.raises(BadQuery, match=r"sort = 'brand_new' is not allowed\. Allowed: timestamp, one, two"):
        lens.query("brand_new", over="2026-11-01", sort="brand_new")


def test_a_correction_is_the_call_that_works(lens: Client) -> None:
    """Under a refused name, with titles of games and studios among the nearest."""
    for wrong, right in (("platfrom", "platform"), ("gmae", "game"), ("stduio", "studio")):
        with pytest.raises(BadQuery) as bad:
            lens.query("revenue", by=wrong, over="2026-11-01")
        assert bad.value.field == "by"
        assert bad.value.amended(f'lens.query("revenue", by="{wrong}")') == f'lens.query("revenue", by="{right}")'
