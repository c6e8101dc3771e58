"""The explorer: pickers, code, table and figure, with faults and hostile names."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from gamelens import BadQuery, dim
from gamelens.client.sync_client import Client
from gamelens.notebook import widgets
from gamelens.notebook.widgets.explorer import Explorer
from gamelens.notebook.widgets.html_blocks import FIGURE
from gamelens.notebook.widgets.static_view import VIEW, StaticView
from support.sandbox_stage import Stage
from support.served_metrics import KEY, METRICS, World
from support.thousand_networks import FORMULA, HOSTILE, NETWORKS

pytestmark = pytest.mark.slow


@pytest.fixture
def explore(calm: Client) -> Iterator[Callable[..., Explorer]]:
    """A function that returns an explorer after its first answer."""
    explorers: list[Explorer] = []

    def make(client: Client = calm, **picked: Any) -> Explorer:
        """Return an explorer of *client* with *picked* in place of the usual query."""
        explorers.append(
            widgets.explorer(client, **{"metric": "user_unique", "over": "last 7 complete days", **picked})
        )
        assert explorers[-1].settled()
        return explorers[-1]

    yield make
    for explorer in explorers:
        explorer.close()


def text_of(explorer: Explorer) -> str:
    """Return all text of *explorer*, without markup."""
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", explorer.static().html, flags=re.DOTALL))


def test_the_code_queries_exactly_the_frame_that_is_shown(calm: Client, explore: Callable[..., Explorer]) -> None:
    """The displayed code, executed, returns the frame that is shown."""
    explorer = explore(by=["game", "platform"], where=dim.country_code.isin(["US", "NA"]), top=3, games="1001")
    again = eval(explorer.code, {"lens": calm})
    assert explorer.frame is not None
    assert explorer.frame.equals(again)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("picker", "value", "code"),
    [
        ("metric", "event_count", '"event_count"'),
        ("over", "last 28 complete days", 'over="last 28 complete days"'),
        ("every", "week", 'every="week"'),
        ("by", "platform", 'by="platform"'),
        ("then_by", "country_code", 'by="country_code"'),
        ("studio", "s2", 'studios="s2"'),
        ("games", ("1001", "2001"), 'games=["1001", "2001"]'),
    ],
)
def test_a_picker_changes_query_table_and_figure(
    explore: Callable[..., Explorer], picker: str, value: Any, code: str
) -> None:
    """Each picker changes code, frame, table and figure."""
    explorer = explore()
    before, table, figure = explorer.frame, explorer.static().html, explorer.figure
    getattr(explorer.pick, picker).value = value
    assert explorer.settled()
    assert code in explorer.code
    assert explorer.frame is not before
    assert explorer.static().html != table
    assert explorer.figure is not figure


def test_a_filter_is_picked_from_the_values_there_are(explore: Callable[..., Explorer]) -> None:
    """The filter offers the values that the service lists for its dimension."""
    explorer = explore()
    explorer.pick.where.value = "platform"
    assert explorer.settled()
    assert explorer.pick.values.offered == ("android", "ios")
    explorer.pick.values.value = ("ios",)
    assert explorer.settled()
    assert 'where={"platform": "ios"}' in explorer.code


def test_another_dimension_forgets_the_values_picked(explore: Callable[..., Explorer]) -> None:
    """Another filter dimension clears the picked values and offers its own."""
    explorer = explore(where={"platform": "ios"})
    explorer.pick.where.value = "country_code"
    assert explorer.settled()
    assert explorer.picked.where is None
    assert explorer.pick.values.offered == ("DE", "NA", "US")


def test_changes_in_quick_succession_are_one_query(
    world: World, lens: Client, explore: Callable[..., Explorer]
) -> None:
    """Four changes in quick succession cause one request, for the last one."""
    explorer = explore(lens)
    before = world.arrived("/metrics/v1/metrics/")
    for metric in ("event_count", "session_unique", "new_users", "revenue"):
        explorer.pick.metric.value = metric
    assert explorer.settled()
    assert explorer.picked.metric == "revenue"
    assert world.arrived("/metrics/v1/metrics/") == before + 1


def test_the_last_answer_wins(world: World, lens: Client, explore: Callable[..., Explorer]) -> None:
    """A slow answer to an earlier query does not replace a later one."""
    explorer = explore(lens)
    world.fail("/metrics/v1/metrics/event_count", latency_s=1.0)
    explorer.pick.metric.value = "event_count"
    while not world.arrived("/metrics/event_count"):
        time.sleep(0.02)
    explorer.pick.metric.value = "session_unique"
    assert explorer.settled()
    time.sleep(1.0)
    assert explorer.frame is not None
    assert "session_unique" in explorer.frame


def test_a_name_the_service_does_not_know_is_a_message(explore: Callable[..., Explorer]) -> None:
    """An unknown name shows the error with the nearest name, and another pick recovers."""
    explorer = explore(by="platfrom")
    assert "Did you mean `platform`?" in text_of(explorer)
    assert explorer.frame is explorer.figure is None
    explorer.pick.by.value = "platform"
    assert explorer.settled()
    assert explorer.frame is not None


def test_a_service_that_fails_leaves_the_pickers_and_says_what_to_do(
    world: World, lens: Client, explore: Callable[..., Explorer]
) -> None:
    """If the service fails, pickers offer the catalog and a message says what to do.

    Neither traceback nor key is shown. After the service recovers a click fills the lists.
    """
    world.fail(status=500)
    explorer = explore(lens)
    text = text_of(explorer)
    assert "press Ask again" in text
    assert "Traceback" not in text
    assert KEY not in explorer.static().html
    assert ("Purchase revenue · revenue", "revenue") in explorer.pick.metric.options
    assert ("Platform · platform", "platform") in explorer.pick.by.options
    world.heal()
    explorer.again.click()
    assert explorer.settled()
    assert explorer.frame is not None
    assert explorer.pick.games.offered == ("1001", "1002", "2001")
    assert "Ask again" not in text_of(explorer)


def test_a_service_that_is_gone_is_a_message(explore: Callable[..., Explorer]) -> None:
    """An unreachable service shows a message with its address."""
    gone = Client(api_key=KEY, metrics_url="http://127.0.0.1:9", cache=False, max_wait_s=0.1)
    assert "nothing answers at http://127.0.0.1:9" in text_of(explore(gone))
    gone.close()


def test_a_client_that_is_closed_is_a_message(lens: Client, explore: Callable[..., Explorer]) -> None:
    """With a closed client the explorer shows the error instead of raising it."""
    lens.close()
    assert "this client is closed" in text_of(explore(lens))


def test_a_partial_answer_is_shown_with_its_gaps(world: World, lens: Client, explore: Callable[..., Explorer]) -> None:
    """If one of several requests fails, the other rows are shown and the gap is named."""
    explorer = explore(lens)
    world.last(1, METRICS, status=503)
    explorer.pick.over.value = "last 90 complete days"
    assert explorer.settled()
    assert "missing" in text_of(explorer)
    assert explorer.frame is not None
    assert 0 < len(explorer.frame) < 90


def test_an_unavailable_range_is_clipped_with_a_message(explore: Callable[..., Explorer]) -> None:
    """A time range beyond the available interval is clipped, and a message says so."""
    assert "Cut to what is available" in text_of(explore(over=("2026-11-18", "2026-12-24")))


def test_an_organisation_without_events_is_a_message(make_stage: Callable[..., Stage]) -> None:
    """An organisation without events shows a message and offers no games."""
    stage = make_stage()
    lens = Client(
        api_key=KEY, metrics_url="http://127.0.0.1:2", cache=False, transport=httpx.ASGITransport(stage.metrics_app)
    )
    explorer = widgets.explorer(lens)
    assert explorer.settled()
    assert "the service has" in text_of(explorer)
    assert explorer.pick.games.offered == ()
    explorer.close()
    lens.close()


def test_a_thousand_values_stay_pickable(explore: Callable[..., Explorer]) -> None:
    """All of them reach the page, which shows as many as match; two are picked there."""
    explorer = explore(metric="ilrd_revenue", by="ilrd_network_name", where={"ilrd_network_name": "Network 0001"})
    assert len(explorer.pick.values.offered) == NETWORKS
    labels = explorer.pick.values.labels
    picked = ["Network 0001", "Network 0777"]
    explorer.pick.values.take({"places": [labels.index(name) for name in picked], "labels": picked})
    assert explorer.settled()
    assert explorer.frame is not None
    assert set(explorer.frame["ilrd_network_name"]) == {"Network 0001", "Network 0777"}


def test_all_thousand_are_a_table_of_which_the_first_are_shown(explore: Callable[..., Explorer]) -> None:
    """A table of a thousand rows shows the first 100 and says so."""
    explorer = explore(metric="ilrd_revenue", by="ilrd_network_name", top=None)
    assert explorer.frame is not None
    assert len(explorer.frame) == NETWORKS
    assert "The first 100 of 1,000 rows." in text_of(explorer)


@pytest.mark.parametrize("name", [HOSTILE, FORMULA])
def test_a_hostile_name_is_only_text(calm: Client, explore: Callable[..., Explorer], name: str) -> None:
    """A hostile name is text in table, code and figure, and the code finds it."""
    explorer = explore(metric="ilrd_revenue", by="ilrd_network_name", where={"ilrd_network_name": name})
    assert "<img" not in explorer.static().html
    assert "<img" not in str(explorer.figure)
    assert text_of(explorer).count(name) >= 2
    assert eval(explorer.code, {"lens": calm})["ilrd_network_name"].tolist() == [name]


def test_retention_is_queried_by_age_and_day(explore: Callable[..., Explorer]) -> None:
    """`retention_retro` shows the age picker, hides the bucket and queries by day."""
    explorer = explore(metric="retention_retro", every="week")
    assert explorer.pick.age.disabled is False
    assert explorer.pick.every.disabled is True
    assert "since_days_ago=1" in explorer.code
    explorer.pick.metric.value = "revenue"
    assert explorer.settled()
    assert explorer.pick.age.disabled is True
    assert "since_days_ago" not in explorer.code
    assert 'every="week"' in explorer.code


def test_a_studio_has_its_own_games(explore: Callable[..., Explorer]) -> None:
    """Picking a studio narrows the games to its own."""
    explorer = explore(games=["1001", "2001"])
    explorer.pick.studio.value = "s2"
    assert explorer.settled()
    assert explorer.pick.games.offered == ("2001",)
    assert explorer.picked.games == ("2001",)


def test_everything_there_is_can_be_picked(calm: Client, explore: Callable[..., Explorer]) -> None:
    """The longest time range offered is the whole available interval."""
    explorer = explore()
    explorer.pick.over.value = explorer.pick.over.options[-1][1]
    assert explorer.settled()
    assert explorer.frame is not None
    assert explorer.frame["timestamp"].nunique() == 120
    assert str(calm.available()) in explorer.code


def test_without_a_kernel_the_output_has_table_and_figure(explore: Callable[..., Explorer]) -> None:
    """The static output is an HTML table and a plotly figure."""
    table, figure = explore(by="platform").bundles()
    assert "<table>" in table["text/html"]
    assert figure[FIGURE]["data"]


def test_with_a_kernel_the_widget_replaces_its_static_view(explore: Callable[..., Explorer]) -> None:
    """With a kernel the widget replaces both outputs of its static view.

    The first output refers to the widget, the second to an empty view, since the widget draws its figure.
    """
    explorer = explore()
    own, nothing = [output[VIEW]["model_id"] for output in explorer.bundles()]
    assert (own, nothing) == (explorer.model_id, "")


def test_a_closed_explorer_sends_no_requests(world: World, lens: Client, explore: Callable[..., Explorer]) -> None:
    """A closed explorer sends no requests, not even for a pick made before."""
    explorer = explore(lens)
    explorer.pick.metric.value = "event_count"
    explorer.close()
    time.sleep(0.5)
    assert world.arrived("/metrics/event_count") == 0


def test_its_static_view_does_not_show_the_key(explore: Callable[..., Explorer]) -> None:
    """Neither HTML, repr nor figure of the static view contain the key."""
    twin = explore().static()
    assert isinstance(twin, StaticView)
    assert KEY not in f"{twin!r}{twin.html}{twin.figure}"


@pytest.mark.parametrize(
    ("picked", "field"),
    [
        ({"by": ["game", "platform", "build"]}, "by"),
        ({"where": (dim.platform == "ios") & (dim.build == "1.0")}, "where"),
        ({"where": {"platform": []}}, "platform"),
    ],
)
def test_a_query_that_the_pickers_cannot_show_is_refused(calm: Client, picked: dict[str, Any], field: str) -> None:
    """Three dimensions, compound filters and empty values raise `BadQuery`."""
    with pytest.raises(BadQuery, match=field):
        widgets.explorer(calm, **picked)


def test_only_a_client_is_accepted() -> None:
    """Anything but a client raises `BadQuery`."""
    with pytest.raises(BadQuery, match="must be a client"):
        widgets.explorer("https://somewhere")  # type: ignore[arg-type]


def test_an_alias_is_picked_like_a_metric(calm: Client, explore: Callable[..., Explorer]) -> None:
    """Aliases whose parts the service has are offered, and the bucket follows from them."""
    explorer = explore(metric="mau", over="last 2 complete months", by="game")
    assert explorer.picked.every == "month"
    assert explorer.pick.every.disabled is True
    assert explorer.frame is not None
    assert explorer.frame.equals(eval(explorer.code, {"lens": calm}))
    assert {value for _, value in explorer.pick.metric.options} >= {"dau", "mau", "user_unique"}
    explorer.pick.metric.value = "user_unique"
    assert explorer.settled()
    assert explorer.pick.every.disabled is False


def test_time_ranges_are_offered_in_words(explore: Callable[..., Explorer]) -> None:
    """The picker has the same words that a query takes."""
    explorer = explore(over="month to date")
    offered = {value for _, value in explorer.pick.over.options}
    assert {"yesterday", "last 7 days", "month to date", "last week"} <= offered


def test_an_older_answer_is_dimmed_while_the_service_is_gone(
    world: World, lens: Client, explore: Callable[..., Explorer]
) -> None:
    """The message stands above it, and a page without a kernel does not show it at all."""
    explorer = explore(lens)
    assert not explorer._table.is_stale
    assert "gamelens-stale" not in explorer._output._dom_classes
    world.fail(status=503)
    explorer.pick.metric.value = "event_count"
    assert explorer.settled()
    assert explorer._table.is_stale
    assert "gamelens-stale" in explorer._output._dom_classes
    assert explorer.frame is not None
    assert "<table" not in explorer.static().html


def test_a_pair_that_cannot_have_rows_is_said(explore: Callable[..., Explorer]) -> None:
    """Purchases have no ad format, ads have one."""
    assert "has no values of ad_type" in text_of(explore(metric="revenue", by="ad_type"))
    assert "has no values" not in text_of(explore(metric="ad_impressions_count", by="ad_type"))


def test_a_metric_is_offered_by_its_name_and_described(explore: Callable[..., Explorer]) -> None:
    """Its unit and what it is stand below the picker."""
    explorer = explore(metric="user_unique")
    assert ("Active players · user_unique", "user_unique") in explorer.pick.metric.options
    assert "players: " in explorer.pick.meaning.value
