"""Pickers keep their selection, whatever is offered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pandas import DataFrame

from gamelens.notebook.widgets.form_query import FormQuery
from gamelens.notebook.widgets.pickers import MOST_SHOWN, MultiPicker, SearchPicker, distinct, label, offer, one
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
        self.panel = QueryForm(question, on_change=self._changed, on_dimension=self._asked)

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


def values(picker: MultiPicker) -> list[str]:
    """Return the values that *picker* offers."""
    return [value for _, value in picker.list.options]


def test_a_pick_stays_though_it_is_not_offered() -> None:
    """A picked value that is not offered stays, in front of the others."""
    picker = one("metric", ["a", "b"], "c")
    offer(picker, ["a", "d"])
    assert picker.value == "c"
    assert [value for _, value in picker.options] == ["c", "a", "d"]


@pytest.mark.parametrize(
    ("typed", "picked"),
    [
        ("Paying users · paying", "paying"),  # its label, as the list has it
        ("Active players · active — everybody", "active"),  # the suggestion of a browser without our list
        (" ACTIVE ", "active"),  # the value
        ("everybody", "active"),  # only one description has it
        ("e", "new"),  # several have it
        ("nothing like it", "new"),
        ("", ""),  # the option for nothing
    ],
)
def test_what_is_typed_picks_the_one_value_that_it_names(typed: str, picked: str) -> None:
    """Label, suggestion, value or a part of one of them. Else the field shows the picked value again."""
    options = [("—", ""), ("Paying users · paying", "paying"), ("Active players · active", "active")]
    about = {"active": "everybody", "paying": "with a purchase"}
    picker = SearchPicker("metric", options, "new", describe=lambda value: about.get(value, ""))
    picker.field.value = typed
    labels = {value: text for text, value in options}
    assert (picker.value, picker.field.value) == (picked, labels.get(picked, "new"))


def test_offering_the_same_again_changes_nothing() -> None:
    """Offering the same values again causes no change."""
    picker = one("metric", ["a", "b"], "b")
    changes: list[object] = []
    picker.observe(changes.append, "value")
    offer(picker, ["a", "b"])
    assert changes == []


def test_picked_values_stay_in_front_while_searching() -> None:
    """A search keeps picked values in front of its matches."""
    picker = MultiPicker("games", ["9"])
    picker.offer([(f"Game {number}", str(number)) for number in range(20)])
    picker.search.value = "game 1"
    assert values(picker) == ["9", "1", *map(str, range(10, 20))]
    assert picker.value == ("9",)


def test_picking_from_the_list_moves_nothing_under_the_pointer() -> None:
    """A pick from the list does not reorder the list."""
    picker = MultiPicker("games")
    picker.offer([("A", "a"), ("B", "b"), ("C", "c")])
    picker.list.value = ("c",)
    assert picker.value == ("c",)
    assert values(picker) == ["a", "b", "c"]


def test_more_than_a_page_holds_are_searched() -> None:
    """More values than a page holds are found by search, and the field shows their number."""
    picker = MultiPicker("is")
    picker.offer([(str(number), str(number)) for number in range(1000)])
    assert len(picker.list.options) == MOST_SHOWN
    assert "1,000" in picker.search.placeholder
    picker.search.value = "999"
    assert values(picker) == ["999"]


def test_nothing_to_pick_from_is_said() -> None:
    """An empty picker says that there is nothing to pick."""
    assert MultiPicker("games").search.placeholder == "nothing to pick from"


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
