"""The parts of widgets that a person operates or reads: buttons, pickers, fields, rows, panes and code.

Each is an anywidget, and all are drawn by `page/controls.js`, so that they work wherever an anywidget does. What a part
shows is in its traits, which only Python sets. What a person does arrives as a message and is checked here: a page may
be older than what it names. Text from outside stays text, except in a `Pane`, whose HTML is made in `html_blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from gamelens.notebook.labels import shorten

Option = tuple[str, Any]

NOTHING: Final = ""  # the value of an option that stands for none
_PAGE: Final = Path(__file__).with_name("page")
STYLE: Final = _PAGE.joinpath("controls.css").read_text(encoding="utf-8")


class Control(anywidget.AnyWidget):
    """A part of a widget.

    Args:
        kind: the function of `page/controls.js` that draws it.
        shown: the traits that it begins with.
    """

    _esm = traitlets.Unicode(_PAGE.joinpath("controls.js").read_text(encoding="utf-8")).tag(sync=True)
    _css = traitlets.Unicode(STYLE).tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    description = traitlets.Unicode().tag(sync=True)
    disabled = traitlets.Bool().tag(sync=True)

    def __init__(self, kind: str, **shown: Any) -> None:
        super().__init__(kind=kind, **shown)
        self.on_msg(lambda _, message, __: self.take(message) if isinstance(message, dict) else None)

    def take(self, message: dict[str, Any]) -> None:
        """Do what a person wants, unless *message* names what is no longer shown."""


class Button(Control):
    """A button. *on_click* is called when it is pressed."""

    def __init__(self, description: str, *, on_click: Callable[[], object], tooltip: str = "") -> None:
        self._on_click = on_click
        super().__init__("button", description=description, tooltip=tooltip)

    def click(self) -> None:
        """Do what the button does."""
        self._on_click()

    def take(self, message: dict[str, Any]) -> None:
        """Do what the button does."""
        self.click()


class Picker(Control):
    """A picker of one value.

    Args:
        description: its label.
        options: pairs of label and value, or values.
        value: the picked value, even if it is missing in *options*.
    """

    value = traitlets.Any()
    options: Any = traitlets.List()
    labels: Any = traitlets.List().tag(sync=True)
    place = traitlets.Int().tag(sync=True)

    def __init__(
        self, description: str, options: Iterable[Option | str], value: Any, *, kind: str = "one", **shown: Any
    ) -> None:
        super().__init__(kind, description=description, value=value, options=with_value(options, value), **shown)
        self._show()
        self.observe(lambda _: self._show(), ["options", "value"])

    def offer(self, options: Iterable[Option | str]) -> None:
        """Replace the options. The picked value stays, even if it is missing there."""
        self.options = with_value(options, self.value)

    def take(self, message: dict[str, Any]) -> None:
        """Pick the option with the place and the label of *message*."""
        place = message.get("place")
        if isinstance(place, int) and 0 <= place < len(self.labels) and self.labels[place] == message.get("label"):
            self.value = self.options[place][1]
        else:
            self.send_state("place")

    def _show(self) -> None:
        self.options = with_value(self.options, self.value)
        with self.hold_sync():
            self.labels = [text for text, _ in self.options]
            self.place = [value for _, value in self.options].index(self.value)


class SearchPicker(Picker):
    """A combobox: one of many values, found by typing a part of its label or description.

    Args:
        description: the label of the field.
        options: pairs of label and value.
        value: the picked value, even if it is missing in *options*.
        describe: returns a sentence about a value, or "".
    """

    abouts: Any = traitlets.List().tag(sync=True)

    def __init__(
        self, description: str, options: Iterable[Option | str], value: Any, *, describe: Callable[[Any], str]
    ) -> None:
        self._describe = describe
        super().__init__(description, options, value, kind="search")

    def _show(self) -> None:
        with self.hold_sync():
            super()._show()
            self.abouts = [self._describe(value) for _, value in self.options]


class MultiPicker(Control):
    """A picker of any number of values, with a search field.

    Of a long list only the first 200 matches are in the page. Picked values stay in the list, whatever the search, and
    even if they are not on offer.
    """

    value = traitlets.Tuple()
    labels: Any = traitlets.List().tag(sync=True)
    places: Any = traitlets.List().tag(sync=True)

    def __init__(self, description: str, value: Iterable[str] = ()) -> None:
        self._offered: dict[str, str] = {}
        self._values: list[str] = []
        super().__init__("several", description=description, value=tuple(value))
        self._show()
        self.observe(lambda _: self._show(), "value")

    def offer(self, options: Iterable[Option]) -> None:
        """Offer *options*, pairs of label and value."""
        self._offered = {value: text for text, value in options}
        self._show()

    @property
    def offered(self) -> tuple[str, ...]:
        """All values on offer, shown or not."""
        return tuple(self._offered)

    def take(self, message: dict[str, Any]) -> None:
        """Pick the options with the places and the labels of *message*."""
        places, labels = message.get("places"), message.get("labels")
        known = dict(enumerate(self.labels))
        if isinstance(places, list) and [known.get(place) for place in places] == labels:
            self.value = tuple(self._values[place] for place in places)
        else:
            self.send_state("places")

    def _show(self) -> None:
        strangers = [value for value in self.value if value not in self._offered]
        self._values = [*self._offered, *strangers]
        with self.hold_sync():
            self.labels = [self._offered.get(value) or label(value) for value in self._values]
            self.places = [self._values.index(value) for value in self.value]


class TextField(Control):
    """A field of text."""

    value = traitlets.Unicode().tag(sync=True)
    placeholder = traitlets.Unicode().tag(sync=True)

    def __init__(self, description: str, placeholder: str) -> None:
        super().__init__("field", description=description, placeholder=placeholder)

    def take(self, message: dict[str, Any]) -> None:
        """Take the text that was typed."""
        if isinstance(text := message.get("text"), str):
            self.value = text


class RowList(Control):
    """A list of buttons, each with a sentence. *on_pick* is called with the place of the button that is pressed.

    A row has the texts `label`, `tooltip`, `text`, and `tone`: "", "warning" or "critical".
    """

    rows: Any = traitlets.List().tag(sync=True)

    def __init__(self, on_pick: Callable[[int], object]) -> None:
        self._on_pick = on_pick
        super().__init__("rows")

    def take(self, message: dict[str, Any]) -> None:
        """Pick the row with the place and the label of *message*."""
        place = message.get("place")
        if isinstance(place, int) and 0 <= place < len(self.rows) and self.rows[place]["label"] == message.get("label"):
            self._on_pick(place)


class Pane(Control):
    """A piece of HTML, as `html_blocks` makes it, dimmed while it is stale."""

    value = traitlets.Unicode().tag(sync=True)
    is_stale = traitlets.Bool().tag(sync=True)

    def __init__(self, value: str = "") -> None:
        super().__init__("pane", value=value)


class Code(Control):
    """Code to read, with a button that copies it and one that inserts it as a cell."""

    value = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        super().__init__("code")


def with_value(options: Iterable[Option | str], value: Any) -> list[Option]:
    """Return *options* as pairs of label and value, with *value* first if it is missing."""
    pairs = [option if isinstance(option, tuple) else (label(option), option) for option in options]
    return pairs if value in [offered for _, offered in pairs] else [(label(value), value), *pairs]


def label(text: Any) -> str:
    """Return a text from outside on one line.

    A part shows it as text, so nothing has to be escaped.
    """
    return shorten(" ".join(str(text).split()), 48) or "(empty)"


def distinct(pairs: Sequence[tuple[str, str]], beside: Sequence[str]) -> list[Option]:
    """Return *pairs* of label and id with unique labels.

    A label that occurs twice gets the text in *beside* and its id added.
    """
    names = [label(name) for name, _ in pairs]
    return [
        (name if names.count(name) == 1 else f"{name} · {label(more)} · {identity}", identity)
        for name, (_, identity), more in zip(names, pairs, beside, strict=True)
    ]
