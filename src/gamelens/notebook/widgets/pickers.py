"""Pickers: one of few, several of many; texts from outside stay text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import ipywidgets
import traitlets

from gamelens.notebook.labels import shorten

Option = tuple[str, Any]

MOST_SHOWN: Final = 200
NOTHING: Final = ""  # a picker whose value is None shows no label at all
_WIDE: Final = {"width": "286px"}
_BLANK: Final = "\u00a0"  # as wide as a label
_LABEL: Final = {"description_width": "84px"}


def one(description: str, options: Iterable[Option | str], value: Any) -> Any:
    """A picker of one of *options*; *value* is one of them, in whatever place, or becomes the first."""
    offered = with_value(options, value)
    return ipywidgets.Dropdown(description=description, options=offered, value=value, layout=_WIDE, style=_LABEL)


def with_value(options: Iterable[Option | str], value: Any) -> list[Option]:
    """*options* as pairs, and *value* in front where it is none of them."""
    pairs = [option if isinstance(option, tuple) else (label(option), option) for option in options]
    return pairs if value in [known for _, known in pairs] else [(label(value), value), *pairs]


def offer(picker: Any, options: Iterable[Option | str]) -> None:
    """Let *picker* offer *options*, and keep what is picked, even if they do not have it."""
    value = picker.value
    pairs = with_value(options, value)
    if list(picker.options) != pairs:
        picker.options = pairs
        picker.value = value


def label(text: Any) -> str:
    """A text from outside on one line of a picker; it is shown as it is, so nothing has to be escaped."""
    return shorten(" ".join(str(text).split()), 48) or "(empty)"


def distinct(pairs: Sequence[tuple[str, str]], beside: Sequence[str]) -> list[Option]:
    """(label, id) *pairs* whose labels differ: a label that is there twice gets what stands *beside* it, and its id."""
    names = [label(name) for name, _ in pairs]
    return [
        (name if names.count(name) == 1 else f"{name} · {label(more)} · {identity}", identity)
        for name, (_, identity), more in zip(names, pairs, beside, strict=True)
    ]


class MultiPicker(ipywidgets.VBox):  # type: ignore[misc]
    """Picks any number of values; a search narrows long lists, of which only so many are put into the page.

    What is picked stays in the list whatever is searched for, and also when it is not (or no longer) on offer.
    """

    value = traitlets.Tuple()

    def __init__(self, description: str, value: Iterable[str] = ()) -> None:
        self._offered: dict[str, str] = {}
        self._is_filling = False
        self.search = ipywidgets.Text(
            description=description, placeholder="", continuous_update=True, layout=_WIDE, style=_LABEL
        )
        self.list = ipywidgets.SelectMultiple(description=_BLANK, rows=4, layout=_WIDE, style=_LABEL)
        super().__init__([self.search, self.list])
        self.value = tuple(value)
        self.search.observe(lambda _: self._fill(), "value")
        self.list.observe(self._picked, "value")
        self.observe(self._told, "value")
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
        wanted = self.search.value.strip().casefold()
        others = {value: text for value, text in self._offered.items() if value not in {*self.value}}
        found = [value for value, text in others.items() if wanted in text.casefold()]
        shown = [*self.value, *found[: max(0, MOST_SHOWN - len(self.value))]]
        every = len(self._offered)
        self.search.placeholder = f"all of {every:,}: search, then pick" if every else "nothing to pick from"
        if len(shown) < len(self.value) + len(found):
            self.search.placeholder = f"{every:,}, {MOST_SHOWN} of them below: search"
        self._is_filling = True
        try:
            self.list.options = [(self._offered.get(value) or label(value), value) for value in shown]
            self.list.value = self.value
        finally:
            self._is_filling = False

    def _picked(self, change: Any) -> None:
        if not self._is_filling:
            self._is_filling = True  # the list stays as it is under the pointer
            try:
                self.value = change["new"]
            finally:
                self._is_filling = False

    def _told(self, _: Any) -> None:
        if not self._is_filling:
            self._fill()
