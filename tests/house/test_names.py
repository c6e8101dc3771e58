"""One name, one thing: no class name twice, no function name twice in a room, no banned word as a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from house.source import TOP, classes, functions, modules, place
from house.violations import Violation, hold
from house.vocabulary import ALLOWED, BANNED, advice, words


def test_no_class_name_is_defined_twice() -> None:
    """Private and nested ones included: a reader searches for the name."""
    places = defaultdict(list)
    for found in classes():
        places[found.node.name].append(found.place)
    twice = ((name, found) for name, found in places.items() if len(found) > 1)
    hold("class_names", (Violation(TOP, f"{name}: {', '.join(found)}") for name, found in twice))


def test_no_public_function_name_is_defined_twice_in_a_room() -> None:
    """Methods are left aside: their class tells them apart."""
    places: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for found, function in functions():
        if not found.owner and not function.name.startswith("_"):
            places[found.module.room, function.name].setdefault(found.module.name, found.place)
    hold(
        "function_names",
        (
            Violation(room, f"{name}: {', '.join(found.values())}")
            for (room, name), found in places.items()
            if len(found) > 1
        ),
    )


def test_no_module_or_class_is_called_by_a_banned_word() -> None:
    """In singular or plural; `vocabulary.toml` says what to call it instead."""

    def violations() -> Iterator[Violation]:
        names = [(it.room, place(it, 1), it.name.rpartition(".")[2]) for it in modules()]
        names += [(it.module.room, it.place, it.node.name) for it in classes()]
        for room, where, name in names:
            if words(name) in BANNED and name not in ALLOWED:
                yield Violation(room, f"{where} {name}: {advice(words(name))}")

    hold("banned_names", violations())
