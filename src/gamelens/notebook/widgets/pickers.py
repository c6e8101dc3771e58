"""Pickers of one value or of several. Text from outside stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import ipywidgets
import traitlets

from gamelens.notebook.labels import shorten

Option = tuple[str, Any]

MOST_SHOWN: Final = 200
NOTHING: Final = ""  # not None, with which a picker shows no label
_WIDE: Final = {"width": "320px", "max_width": "100%"}
_LABEL: Final = {"description_width": "84px"}


def one(description: str, options: Iterable[Option | str], value: Any) -> Any:
    """Return a picker of one of *options*. Any other *value* becomes the first option."""
    offered = with_value(options, value)
    return ipywidgets.Dropdown(description=description, options=offered, value=value, layout=_WIDE, style=_LABEL)


def with_value(options: Iterable[Option | str], value: Any) -> list[Option]:
    """Return *options* as pairs of label and value, with *value* first if it is missing."""
    pairs = [option if isinstance(option, tuple) else (label(option), option) for option in options]
    return pairs if value in [offered for _, offered in pairs] else [(label(value), value), *pairs]


def offer(picker: Any, options: Iterable[Option | str]) -> None:
    """Replace the options of *picker*. The picked value stays, even if it is missing there."""
    value = picker.value
    pairs = with_value(options, value)
    if list(picker.options) != pairs:
        picker.options = pairs
        picker.value = value


def label(text: Any) -> str:
    """Return a text from outside on one line.

    A picker shows it as text, so nothing has to be escaped.
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


class SearchPicker(ipywidgets.Box):  # type: ignore[misc]
    """A combobox: one of many values, found by typing a part of its label or description.

    `page/widget.js` makes it of a text field with suggestions. Typed text that matches no value, or several, is
    replaced by the picked value again.

    Args:
        description: the label of the field.
        options: pairs of label and value.
        value: the picked value, even if it is missing in *options*.
        describe: returns a sentence about a value, or "".
    """

    value = traitlets.Any()
    options: Any = traitlets.List()

    def __init__(
        self, description: str, options: Iterable[Option | str], value: Any, *, describe: Callable[[Any], str]
    ) -> None:
        self._describe = describe
        self._suggestions: dict[str, Any] = {}
        self.field = ipywidgets.Combobox(
            description=description, continuous_update=False, layout=_WIDE, style=_LABEL, placeholder="type to search"
        )
        super().__init__([self.field])
        self.value, self.options = value, with_value(options, value)
        self._fill()
        self.observe(lambda _: self._fill(), "options")
        self.observe(lambda _: self._show(), "value")
        self.field.observe(lambda change: self._take(change["new"]), "value")

    def _fill(self) -> None:
        """Suggest the options, each with its description."""
        self._suggestions = {
            " — ".join(filter(None, (text, self._describe(value)))): value for text, value in self.options
        }
        self.field.options = list(self._suggestions)
        self._show()

    def _show(self) -> None:
        self.field.value = next((text for text, value in self.options if value == self.value), label(self.value))

    def _take(self, typed: str) -> None:
        """Pick what was *typed* or chosen, if it names one value."""
        wanted = typed.strip().casefold()
        names = {text.casefold(): value for text, value in (*self.options, *self._suggestions.items())}
        names |= {str(value).casefold(): value for _, value in self.options}
        found = (
            [names[wanted]]
            if wanted in names
            else [value for text, value in self._suggestions.items() if wanted in text.casefold()]
        )
        if len(found) == 1:
            self.value = found[0]
        self._show()


class MultiPicker(ipywidgets.VBox):  # type: ignore[misc]
    """A picker of any number of values, with a search field.

    Of a long list only the first 200 matches are in the page. Picked values stay in the list, whatever the search, and
    even if they are not on offer.
    """

    value = traitlets.Tuple()

    def __init__(self, description: str, value: Iterable[str] = ()) -> None:
        self._offered: dict[str, str] = {}
        self._is_filling = False
        self.search = ipywidgets.Text(
            description=description, placeholder="", continuous_update=True, layout=_WIDE, style=_LABEL
        )
        self.list = ipywidgets.SelectMultiple(description=f"pick {description}", rows=4, layout=_WIDE, style=_LABEL)
        super().__init__([self.search, self.list])
        self.value = tuple(value)
        self.search.observe(lambda _: self._fill(), "value")
        self.list.observe(self._picked, "value")
        self.observe(self._on_value, "value")
        self._fill()

    def offer(self, options: Iterable[Option]) -> None:
        """Offer *options*, pairs of label and value."""
        self._offered = {value: text for text, value in options}
        self._fill()

    @property
    def offered(self) -> tuple[str, ...]:
        """All values on offer, shown or not."""
        return tuple(self._offered)

    def _fill(self) -> None:
        """Show the values that match the search, after those that are picked."""
        wanted = self.search.value.strip().casefold()
        others = {value: text for value, text in self._offered.items() if value not in {*self.value}}
        matches = [value for value, text in others.items() if wanted in text.casefold()]
        shown = [*self.value, *matches[: max(0, MOST_SHOWN - len(self.value))]]
        every = len(self._offered)
        self.search.placeholder = f"all of {every:,}: search, then pick" if every else "nothing to pick from"
        if len(shown) < len(self.value) + len(matches):
            self.search.placeholder = f"{MOST_SHOWN} of {every:,} below: search"
        self._is_filling = True
        try:
            self.list.options = [(self._offered.get(value) or label(value), value) for value in shown]
            self.list.value = self.value
        finally:
            self._is_filling = False

    def _picked(self, change: Any) -> None:
        if not self._is_filling:
            self._is_filling = True  # so that the list does not change under the pointer
            try:
                self.value = change["new"]
            finally:
                self._is_filling = False

    def _on_value(self, _: Any) -> None:
        if not self._is_filling:
            self._fill()
