"""Parts of widgets: pickers keep their selection, and messages of an older page change nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pandas import DataFrame

from gamelens.catalog import CATALOG, Catalog
from gamelens.notebook.widgets.controls import (
    Button,
    Control,
    MultiPicker,
    Picker,
    RowList,
    SearchPicker,
    TextField,
    distinct,
    label,
)
from gamelens.notebook.widgets.form_query import FormQuery
from gamelens.notebook.widgets.query_form import FormChoices, QueryForm
from gamelens.wire.intervals import Interval
from support.thousand_networks import FORMULA, HOSTILE

LISTS = FormChoices(
    available=Interval(datetime(2026, 8, 1, tzinfo=UTC), datetime(2026, 11, 20, 10, tzinfo=UTC)),
    metrics=["revenue", "arpu", "new_metric"],
    dimensions=["severity", "platform", "build"],
    games=DataFrame(
        {"game_id": ["1", "2"], "game": ["Tile", HOSTILE], "studio_id": ["s1", "s2"], "studio": ["N", "S"]}
    ),
    studios=DataFrame({"studio_id": ["s1", "s2"], "studio": ["N", "S"]}),
)


class ObservedPanel:
    """A query form that counts its changes and its requests for values."""

    def __init__(self, **picked: Any) -> None:
        self.changes = self.dimensions = 0
        question = FormQuery(**{"metric": "arpu", "over": "last 7 complete days", **picked})
        self.panel = QueryForm(question, CATALOG, on_change=self._changed, on_dimension=self._asked)

    def _changed(self) -> None:
        self.changes += 1

    def _asked(self) -> None:
        self.dimensions += 1


def test_offering_the_lists_of_the_service_changes_no_pick() -> None:
    """Offering lists keeps every pick, even in another order than the catalog's."""
    observed = ObservedPanel(
        by=("platform", "country_code"), where=("build", ("1.0",)), games=("2",), studio="s2", top=10
    )
    before = observed.panel.picked
    observed.panel.offer(LISTS)
    assert observed.panel.picked == before
    assert observed.dimensions == 0
    assert {value for _, value in observed.panel.metric.options} == {*LISTS.metrics}
    assert [value for _, value in observed.panel.where.options] == ["", *LISTS.dimensions]


def test_own_metrics_can_be_picked_with_their_meaning() -> None:
    """They are offered by title as long as the service has their metrics, and their bucket is their own."""
    catalog = Catalog.defined(
        {"net_revenue": {"formula": "0.7 * revenue", "title": "Net money"}, "sticky": "stickiness * 1"}
    )
    picked = FormQuery(metric="net_revenue", over="last 7 complete days")
    panel = QueryForm(picked, catalog, on_change=lambda: None, on_dimension=lambda: None)
    assert "USD: 0.7 &#42; revenue" in panel.meaning.value
    panel.offer(LISTS)
    assert ("Net money · net_revenue", "net_revenue") in panel.metric.options
    assert "sticky" not in {value for _, value in panel.metric.options}
    panel.metric.value = "sticky"
    assert panel.picked.every == "month"


def test_another_studio_is_one_change() -> None:
    """Another studio, and the games it removes, are one change."""
    observed = ObservedPanel(games=("1", "2"))
    observed.panel.offer(LISTS)
    before = observed.changes
    observed.panel.studio.value = "s1"
    assert observed.panel.games.value == ("1",)
    assert observed.changes == before + 1


def test_another_dimension_is_asked_for_once() -> None:
    """Another filter dimension clears the values and requests its own once."""
    observed = ObservedPanel(where=("platform", ("ios",)))
    observed.panel.where.value = "build"
    assert (observed.panel.values.value, observed.dimensions) == ((), 1)


def test_a_pick_stays_though_it_is_not_offered() -> None:
    """A picked value that is not offered stays, in front of the others."""
    picker = Picker("metric", ["a", "b"], "c")
    picker.offer(["a", "d"])
    assert picker.value == "c"
    assert ([value for _, value in picker.options], picker.place) == (["c", "a", "d"], 0)


def test_a_value_that_is_set_and_not_offered_is_shown() -> None:
    """As the code of a notebook may set it."""
    picker = Picker("over", [("Last week", "last week"), "yesterday"], "yesterday")
    picker.value = ("2026-11-01", "2026-11-07")
    assert picker.labels[picker.place] == label(("2026-11-01", "2026-11-07"))
    assert picker.labels[1:] == ["Last week", "yesterday"]


def test_offering_the_same_again_changes_nothing() -> None:
    """Offering the same values again causes no change."""
    picker = Picker("metric", ["a", "b"], "b")
    changes: list[object] = []
    picker.observe(changes.append, ["value", "labels", "place", "options"])
    picker.offer(["a", "b"])
    assert changes == []


def test_the_option_that_is_pressed_is_picked() -> None:
    """By its place, with its label; of a value that is not text too."""
    picker = SearchPicker("largest", [("10", 10), ("20", 20), ("all", 0)], 10, describe=lambda value: f"about {value}")
    picker.take({"place": 2, "label": "all"})
    assert (picker.value, picker.place, picker.abouts) == (0, 2, ["about 10", "about 20", "about 0"])


@pytest.mark.parametrize(
    "message",
    [{"place": 1, "label": "a"}, {"place": 7, "label": "b"}, {"place": -1, "label": "b"}, {"place": "1"}, {}],
)
def test_an_option_of_an_older_list_picks_nothing(message: dict[str, Any]) -> None:
    """A page may be slower than the lists of the service: what it names must still be there."""
    picker = Picker("metric", ["a", "b"], "a")
    picker.take(message)
    assert picker.value == "a"


def test_several_are_picked_from_what_is_offered() -> None:
    """Values that are picked and not offered can be picked again, behind the others."""
    picker = MultiPicker("games", ["9"])
    picker.offer([(f"Game {number}", str(number)) for number in range(3)])
    assert (picker.labels, picker.places) == (["Game 0", "Game 1", "Game 2", "9"], [3])
    picker.take({"places": [3, 1], "labels": ["9", "Game 1"]})
    assert (picker.value, picker.places) == (("9", "1"), [3, 1])
    for places, labels in (([1], ["Game 2"]), ([8], ["Game 8"]), (None, None), ([0], None), ([-1], ["9"])):
        picker.take({"places": places, "labels": labels})
    assert picker.value == ("9", "1")
    picker.take({"places": [], "labels": []})
    assert len(picker.value) == 0


def test_buttons_fields_and_rows_do_what_a_message_says() -> None:
    """And nothing for a message that says nothing."""
    pressed: list[object] = []
    Button("Ask again", on_click=lambda: pressed.append("again")).take({})
    rows = RowList(pressed.append)
    rows.rows = [{"label": "A"}, {"label": "B"}]
    for place, text in ((1, "B"), (1, "A"), (2, "B"), (-1, "B"), ("1", "B")):
        rows.take({"place": place, "label": text})
    field = TextField("search", "")
    field.take({"text": "ember"})
    field.take({"text": 7})
    assert (pressed, field.value) == (["again", 1], "ember")


def test_a_message_that_is_no_object_is_ignored() -> None:
    """Whatever a page sends."""
    field = TextField("search", "")
    for content in ("text", 1, None, [{"text": "x"}]):
        field._handle_custom_msg(content, [])
    field._handle_custom_msg({"text": "x"}, [])
    assert field.value == "x"


def test_every_part_is_drawn_by_one_module_without_an_address() -> None:
    """Front ends load it from the part itself, and nothing from a network."""
    parts: list[Control] = [TextField("a", ""), RowList(print), Picker("b", ["c"], "c")]
    (script,) = {part._esm for part in parts}
    assert {part.kind for part in parts} == {"field", "rows", "one"}
    assert script.endswith("export default {render}\n")
    assert "://" not in script + parts[0]._css


def test_games_of_the_same_name_are_told_apart() -> None:
    """Games of one title are labelled with studio and id."""
    assert distinct([("Tile", "1"), ("Tile", "2"), ("Ember", "3")], ["North", "South", "South"]) == [
        ("Tile · North · 1", "1"),
        ("Tile · South · 2", "2"),
        ("Ember", "3"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [(HOSTILE, HOSTILE), (FORMULA, FORMULA), ("two\nlines", "two lines"), ("", "(empty)")]
)
def test_a_label_is_one_line_of_plain_text(text: str, shown: str) -> None:
    """A label keeps hostile names as text, joins lines and names the empty text."""
    assert label(text) == shown


@pytest.mark.parametrize(
    "value", [HOSTILE, FORMULA, "both \" and '", "back\\slash", "two\nlines", "two  spaces", "é\u202e"]
)
def test_any_value_comes_back_from_the_code(value: str) -> None:
    """Any value survives the generated code, which is executed as Python."""
    passed: dict[str, object] = {}

    class Lens:
        def query(self, metric: str, **arguments: object) -> None:
            passed.update(arguments, metric=metric)

    eval(FormQuery(metric="revenue", over=value, where=("platform", (value, "b"))).code(), {"lens": Lens()})
    assert passed["over"] == value
    assert passed["where"] == {"platform": [value, "b"]}
