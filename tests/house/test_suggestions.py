"""A misspelt name gets what a misspelt argument gets, on all that a user holds: modules, clients, results, errors."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import msgspec
import pytest

import gamelens
from gamelens.errors import NoSuchName

NO_RESULTS = ("gamelens.cli.", "gamelens.sandbox.")
"""Rooms whose objects nobody holds: a user meets their commands and services."""


@cache
def public_modules() -> tuple[ModuleType, ...]:
    """Return the package and its modules that list public names."""
    packages = [module for module in pkgutil.walk_packages(gamelens.__path__, "gamelens.") if module.ispkg]
    found = [gamelens, *(importlib.import_module(module.name) for module in packages)]
    for module in found:
        for name in getattr(module, "__all__", ()):
            getattr(module, name)
    known = [module for name, module in sys.modules.items() if f"{name}.".startswith("gamelens.")]
    return tuple(
        module for module in known if hasattr(module, "__all__") and not f"{module.__name__}.".startswith(NO_RESULTS)
    )


@cache
def public_classes() -> tuple[type, ...]:
    """Return the classes that public names are, have or return, with what these have and return in turn."""
    names = [
        name for module in public_modules() for public in module.__all__ for name in named(getattr(module, public))
    ]
    names.append("Accessor")  # `df.lens`, which pandas makes
    known = {
        class_.__name__: class_
        for name, module in sys.modules.copy().items()
        if name.startswith("gamelens.") and not f"{name}.".startswith(NO_RESULTS)
        for class_ in vars(module).values()
        if inspect.isclass(class_) and class_.__module__ == name
    }
    del known["DimensionNamespace"]  # `dim` takes every name: the service may have dimensions of its own
    names.append("FilterDimension")
    del known["Filter"]  # has operators alone
    found = dict[type, None]()
    while names:
        class_ = known.get(names.pop())
        if class_ is not None and class_ not in found:
            found[class_] = None
            names += members_named(class_)
    return tuple(sorted(found, key=lambda class_: (class_.__module__, class_.__name__)))


def named(value: Any) -> Iterator[str]:
    """Yield the names of the class that *value* is or is made of, or of what it returns."""
    if inspect.isclass(value):
        yield value.__name__
    elif inspect.isroutine(value):
        yield from re.findall(r"\w+", str(inspect.unwrap(value).__annotations__.get("return")))
    elif not inspect.ismodule(value):
        yield type(value).__name__


def members_named(class_: type) -> Iterator[str]:
    """Yield the names in the types of public fields, properties and methods of *class_*."""
    for base in class_.__mro__:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if not name.startswith("_"):
                yield from re.findall(r"\w+", str(annotation))
        for name, member in vars(base).items():
            function = (
                getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
            )
            if inspect.isfunction(function) and (name.startswith("__") or not name.startswith("_")):
                yield from named(function)


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_a_misspelt_name_of_a_module_is_suggested(module: ModuleType) -> None:
    """Also one of a single topic of the analyses."""
    right = max((name for name in module.__all__ if name[0] != "_"), key=len)
    with pytest.raises(NoSuchName) as raised:
        getattr(module, misspelt(right))
    assert raised.value.did_you_mean == right


@pytest.mark.parametrize("class_", public_classes(), ids=lambda class_: f"{class_.__module__}.{class_.__name__}")
def test_a_misspelt_attribute_is_suggested(class_: type) -> None:
    """It stays an `AttributeError`, and what begins with an underscore gets Python's own words."""
    held = made(class_)
    right = max((name for name in dir(held) if name[0] != "_"), key=len)
    with pytest.raises(NoSuchName, match=f"does not exist in .*{right}") as raised:
        getattr(held, misspelt(right))
    assert raised.value.did_you_mean == right
    with pytest.raises(AttributeError, match="has no attribute '_repr_zzz_'") as plain:
        held._repr_zzz_  # noqa: B018
    assert not isinstance(plain.value, NoSuchName)


def made(class_: Any) -> Any:
    """Return an object of *class_* whatever its values, made and left without a word of its own."""
    if issubclass(class_, tuple):
        return class_.__new__(class_, *[None] * len(class_._fields))
    silent: Any = type(class_)(
        class_.__name__, (class_,), dict.fromkeys(("__post_init__", "__del__"), lambda self: None)
    )
    if issubclass(class_, msgspec.Struct):
        return silent(**dict.fromkeys(class_.__struct_fields__))
    held = silent.__new__(silent)
    for name in getattr(class_, "__dataclass_fields__", ()):
        object.__setattr__(held, name, None)
    return held


def misspelt(name: str) -> str:
    """Return *name* without the letter before its last."""
    return name[:-2] + name[-1] + "q"


def test_what_queries_and_analyses_return_is_among_them() -> None:
    """Negative control: the classes are found by what is written in signatures."""
    found = {class_.__name__ for class_ in public_classes()}
    expected = (
        "Plan PlannedPiece Receipt Gap QueryRecord Description CacheInfo Joined MatchReport Interval Reconciliation"
    )
    assert {*expected.split(), "HealthReport", "BadQuery", "Client", "LakeClient", "SubmitResult", "Accessor"} <= found


def test_methods_of_a_client_are_found_from_the_package() -> None:
    """All that a client has: `gl.query` is written `gl.connect().query`."""
    for method in (name for name in dir(gamelens.Client) if name[0] != "_"):
        with pytest.raises(NoSuchName) as raised:
            getattr(gamelens, method)
        assert raised.value.did_you_mean == f"connect().{method}"
