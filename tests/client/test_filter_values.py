"""A value in a filter that the service has never had: a warning with the nearest one, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)
from gamelens.client.sync_client import Client
from gamelens.client.tables.countries import country_code
from gamelens.client.tables.filter_values import doubtful_values, unprovable_values, unseen_value_text
from gamelens.wire.filters import Filter, dim
from gamelens.wire.intervals import Interval
from support.sandbox_stage import Stage
from support.watched_service import Watch, quick, sale, sell

OVER = "2026-11-18/P1D"
AVAILABLE = Interval.parse("2026-11-18/2026-11-20T10:00Z")
KNOWN = ["BR", "GB", "KR", "US"]
ROWS = pa.table({"platform": ["ios", None], "event_count": [2, 0]})
NOTHING = pa.table({"platform": pa.array([], pa.string()), "event_count": pa.array([], pa.int64())})
IS_IOS, IS_BR = dim.platform == "ios", dim.country_code == "BR"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with purchases in BR, US and GB, the last one only today."""
    stage = Stage(tmp_path_factory.mktemp("shop") / "state")
    sales = [sale("2026-11-18", country_code=code, user_id=code) for code in ("BR", "US")]
    sell(stage, *sales, sale("2026-11-19", country_code="GB"))
    yield stage
    stage.sandbox.close()


@pytest.fixture
def watch(shop: Stage) -> Watch:
    """Return a view of the requests to the sandbox, which no test changes."""
    return Watch(shop.metrics_app)


def ask(lens: Client, where: Filter, **arguments: Any) -> Any:
    """Return the frame of revenue on the first day with a filter."""
    return lens.query("revenue", where=where, over=OVER, **arguments)


@pytest.mark.parametrize(
    ("where", "nearest"),
    [(dim.country_code == "br", "BR"), (dim.country_code == "Brazil", "BR"), (dim.platform == "iOs", "ios")],
)
def test_a_value_that_there_is_not_warns_with_the_nearest(watch: Watch, where: Filter, nearest: str) -> None:
    """In another case or as a name of a country; the receipt has the warning and says that a list was requested."""
    lens = quick(watch)
    with pytest.warns(UserWarning, match=rf"matches nothing: .*Did you mean `{nearest}`\?"):
        frame = ask(lens, where)
    receipt = frame.lens.receipt
    dimension = next(iter(watch.lists))
    assert (receipt.values_listed, receipt.requests, watch.lists) == ((dimension,), 2, [dimension])
    assert f"Values of {dimension} were listed only to check the filter." in frame.lens.explain()
    assert frame.attrs["gamelens"]["values_listed"] == [dimension]


def test_a_value_with_rows_costs_nothing(watch: Watch) -> None:
    """The rows prove the value, so no list is requested and the receipt has no such key."""
    lens = quick(watch)
    frames = [ask(lens, IS_BR), ask(lens, IS_BR & IS_IOS, by="build"), ask(lens, IS_BR | IS_IOS, by=["platform"])]
    shown = dim.country_code.isin(["BR", "US"])
    frames.append(ask(lens, shown & IS_IOS, by="country_code"))
    assert watch.lists == ["country_code"]  # of the third, where neither is proven
    assert ["values_listed" in frame.attrs["gamelens"] for frame in frames] == [False, False, True, False]


def test_a_value_of_another_day_is_no_mistake(watch: Watch) -> None:
    """A value without rows in the interval, that the service has on another day, does not warn."""
    frame = ask(quick(watch), dim.country_code == "GB")
    assert (len(frame[frame["revenue"] > 0]), frame.lens.receipt.warnings) == (0, ())
    assert watch.lists == ["country_code"]


@pytest.mark.parametrize(
    "where", [dim.category == "ads", dim.ad_action.isin(["show", "failed_show"]), ~(dim.severity == "critical")]
)
def test_a_value_that_the_rules_of_events_state_is_no_mistake(watch: Watch, where: Filter) -> None:
    """A game without ads or errors is asked for them by every report, so they neither warn nor cost a request."""
    assert (ask(quick(watch), where).lens.receipt.warnings, watch.lists) == ((), [])


def test_a_misspelt_value_of_a_closed_list_warns(watch: Watch) -> None:
    """The rules state "ads", not "ad"."""
    with pytest.warns(UserWarning, match="'ad' in where matches nothing"):
        ask(quick(watch), dim.category == "ad")


def test_one_wrong_value_of_several_warns(watch: Watch) -> None:
    """The rows of the other values hide it, so that only the list tells."""
    with pytest.warns(UserWarning, match="'uk' in where .*`GB`") as warned:
        ask(quick(watch), dim.country_code.isin(["BR", "uk"]))
    assert len(warned) == 1
    with pytest.warns(UserWarning, match="'XK' in where .* It has BR, GB, US"):
        ask(quick(watch), ~(dim.country_code == "XK"))


def test_a_remembered_list_is_not_requested_again(watch: Watch) -> None:
    """A list of any interval proves a value, and the one of all days serves every query of the hour."""
    lens = quick(watch)
    lens.dimension_values("country_code", over=OVER)
    watch.clear()
    ask(lens, dim.country_code.isin(["BR", "US"]))
    assert watch.lists == []
    for value in ("br", "us"):
        with pytest.warns(UserWarning, match="matches nothing"):
            ask(lens, dim.country_code == value, by="platform")
    assert watch.lists == ["country_code"]


@pytest.mark.parametrize(
    "where", [IS_BR, dim.country_code.isin(["BR", "US"]), ~IS_BR & IS_IOS, dim.country_code.isin(["US", "xx"])]
)
@pytest.mark.parametrize("by", [None, "country_code"])
@pytest.mark.filterwarnings("ignore:.*matches nothing")
def test_a_plan_counts_the_list(watch: Watch, where: Filter, by: str | None) -> None:
    """The plan knows which values no row can prove."""
    lens = quick(watch)
    planned = lens.plan("revenue", by=by, where=where, over=OVER).requests
    is_unplanned = by is not None and "xx" in str(where)  # only the rows tell that a value is missing
    assert ask(lens, where, by=by).lens.receipt.requests == planned + is_unplanned
    assert lens.plan("revenue", by=by, where=where, over=OVER).requests == 1


def test_a_list_that_cannot_be_had_is_no_error(watch: Watch) -> None:
    """The rows are there without it."""
    watch.fails = lambda sent: sent.name == "country_code"
    frame = ask(quick(watch), dim.country_code == "br")
    assert frame.lens.receipt.warnings == ()


def test_a_replay_without_the_list_does_not_fail(watch: Watch, tmp_path: Path) -> None:
    """An old recording has no such list: the frame comes without the check, and with the list it warns again."""
    pool = httpx.ASGITransport(watch)
    recording = Client(api_key="key-of-acme", metrics_url="http://127.0.0.7:1", transport=pool, record=tmp_path / "r")
    with recording, pytest.warns(UserWarning, match="matches nothing"):
        ask(recording, dim.country_code == "br")
    with Client(replay=tmp_path / "r") as lens, pytest.warns(UserWarning, match="matches nothing"):
        assert ask(lens, dim.country_code == "br").lens.receipt.values_listed == ()
    (listed,) = (tmp_path / "r").glob("dimensions-country_code-*.json")
    listed.unlink()
    with Client(replay=tmp_path / "r") as lens:
        assert ask(lens, dim.country_code == "br").lens.receipt.warnings == ()


def test_retention_is_checked_too(watch: Watch) -> None:
    """The filter of install events is one as well."""
    with pytest.warns(UserWarning, match=r"country_code = 'br' in where"):
        quick(watch).retention(1, over=OVER, where=dim.country_code == "br")


@pytest.mark.parametrize(
    ("where", "table", "expected"),
    [
        (IS_IOS, ROWS, {}),
        (IS_BR, ROWS, {}),
        (IS_BR, NOTHING, {"country_code": ("BR",)}),
        (IS_BR & IS_IOS & ~(dim.build == "1"), ROWS, {"build": ("1",)}),
        (IS_BR | IS_IOS, ROWS, {"country_code": ("BR",)}),
        (dim.platform.isin(["ios", "android", "android"]), ROWS, {"platform": ("android",)}),
        (IS_BR, pa.table({"event_count": [0]}), {"country_code": ("BR",)}),
        (IS_BR, pa.table({"sum": [0.5]}), {}),
        (IS_BR, pa.table({"sum": [None, 0.0]}), {"country_code": ("BR",)}),
    ],
)
def test_rows_prove_values(where: Filter, table: pa.Table, expected: dict[str, tuple[str, ...]]) -> None:
    """A row with the value, or any number where all events must have it."""
    assert doubtful_values(where, table) == expected


def test_some_values_no_rows_can_prove() -> None:
    """One of several, one of an alternative, or an excluded one, unless the rows show the dimension."""
    several = dim.country_code.isin(["BR", "US"])
    assert unprovable_values(IS_BR & IS_IOS, ()) == {}
    assert unprovable_values(several & ~IS_IOS, ()) == {"country_code": ("BR", "US"), "platform": ("ios",)}
    assert unprovable_values(several & ~IS_IOS, ("country_code", "platform")) == {"platform": ("ios",)}


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (" br ", "Did you mean `BR`?"),
        ("united  kingdom", "Did you mean `GB`?"),
        ("South Korea", "Did you mean `KR`?"),
        ("bra", "Did you mean `BR`?"),
        ("France", "It has BR, GB, KR, US."),
        ("\x1b[31m", r"'\x1b[31m' in where matches nothing"),
    ],
)
def test_the_nearest_value(value: str, hint: str) -> None:
    """A country that the service does not have suggests nothing, not a country with a similar name."""
    text = unseen_value_text("country_code", value, KNOWN, AVAILABLE)
    assert hint in text
    assert "\x1b" not in text


def test_many_values_are_not_all_named() -> None:
    """Eight of them, and the number of the others; or that there are none."""
    builds = [f"1.{number}" for number in range(20)]
    assert unseen_value_text("build", "beta", builds, AVAILABLE).endswith(", 1.15 and 12 more.")
    assert unseen_value_text("ab_id", "x", [], AVAILABLE).endswith("It has no values.")


def test_countries_have_their_usual_names() -> None:
    """The two letters of a country, whatever the case."""
    names = {"brazil": "BR", "GERMANY": "DE", "uk": "GB", "USA": "US", "Türkiye": "TR", "Namibia": "NA"}
    assert {name: country_code(name) for name in names} == names
    assert country_code("Atlantis") is None
