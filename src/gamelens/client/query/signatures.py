"""How the methods of the clients show their arguments, and refuse those that do not exist.

The arguments of a query are declared in `Client.query`: names, types, defaults, and words in its docstring. `plan`, the
asynchronous client and the command line take them from there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import wraps
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET

from gamelens.client.tables.time_ranges import USUAL_RANGE, WhenUnavailable
from gamelens.errors import BadQuery, with_argument
from gamelens.wire.intervals import Granularity

FrameKind = Literal["pandas", "arrow", "polars"]
OnError = Literal["raise", "gaps"]
Fields = Literal["all"]
P = ParamSpec("P")
Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S")

WORDS: Final = {
    "Fields": Fields,
    "FrameKind": FrameKind,
    "Granularity": Granularity,
    "OnError": OnError,
    "WhenUnavailable": WhenUnavailable,
}
"""Types of arguments that are one of several words."""
_PLAIN: Final = {
    "Names": "str | list[str]",
    "TimeRange": "str | date | tuple | Interval",
    "Top": "int | dict",
    "Where": "str | Filter | dict",
    **{name: " | ".join(f'"{word}"' for word in get_args(words)) for name, words in WORDS.items()},
}


class Argument(msgspec.Struct, frozen=True):
    """An argument of a method: its name, its type as it is written, its default, and what `Args:` says of it."""

    name: str
    type: str
    default: Any
    words: str


class ArgumentError(BadQuery, TypeError):
    """An argument that is missing or does not exist."""

    def amended(self, call: str) -> str:
        """Return *call* with the argument that was meant."""
        if self.is_missing and self.field == "over":
            return with_argument(call, f'over="{USUAL_RANGE}"')
        return super().amended(call)


class PlainType(str):
    """A type in a signature that people read, without the names that only this project knows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def typed(method: Callable[P, R]) -> Callable[P, R]:
    """Return *method* with plain types in `help`, and with errors that name the argument that was meant."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _check_call(signature, args, kwargs)
        return method(*args, **kwargs)

    return with_plain_types(call)


def takes(
    declared: Callable[Concatenate[S, P], object], parse: Callable[[S, Mapping[str, Any]], Q]
) -> Callable[[Callable[[S, Q], R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator that gives a method the arguments of another one, *declared*.

    The method itself takes one argument: what *parse* makes of its object and of them, by name. Its docstring gets
    their `Args:`.
    """
    signature = inspect.signature(declared)

    def decorate(method: Callable[[S, Q], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            _check_call(signature, (self, *args), kwargs)
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            return method(self, parse(self, bound.arguments))

        arguments = (inspect.getdoc(declared) or "").partition("\n\nArgs:")[2].partition("\n\nRaises:")[0]
        text, heading, errors = (inspect.getdoc(method) or "").partition("\n\nRaises:")
        call.__doc__ = f"{text}\n\nArgs:{arguments}{heading}{errors}"
        returned = inspect.signature(method).return_annotation
        shown = cast("Any", call)
        shown.__signature__ = signature.replace(return_annotation=_plain(returned))
        del shown.__wrapped__  # `inspect.unwrap` would lead to *method* and its one argument
        call.__annotations__ = {**declared.__annotations__, "return": returned}
        return call

    return decorate


def awaited(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return *method* of `Client` as a coroutine: its arguments are checked when it is awaited."""

    @wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await cast("Any", method(self, *args, **kwargs))
        return result

    return call


def arguments_of(method: Callable[..., Any]) -> Iterator[Argument]:
    """Yield the arguments of *method*, but for `self`."""
    section = (inspect.getdoc(method) or "").partition("\n\nArgs:\n")[2].partition("\n\n")[0]
    words = {name: " ".join(text.split()) for name, text in re.findall(r"^    (\w+): ((?:.|\n {8})*)", section, re.M)}
    for name, parameter in [*inspect.signature(method).parameters.items()][1:]:
        yield Argument(name, method.__annotations__[name], parameter.default, words.get(name, ""))


def with_plain_types(function: S) -> S:
    """Return *function* with plain types in the signature that `help` and tooltips show."""
    signature = inspect.signature(cast("Callable[..., Any]", function))
    plain = [parameter.replace(annotation=_plain(parameter.annotation)) for parameter in signature.parameters.values()]
    cast("Any", function).__signature__ = signature.replace(
        parameters=plain, return_annotation=_plain(signature.return_annotation)
    )
    return function


def _plain(annotation: object) -> object:
    """Return *annotation*, which is text or nothing, in plain types."""
    if not isinstance(annotation, str):
        return annotation
    return PlainType(re.sub(r"\w+", lambda word: _PLAIN.get(word[0], word[0]), annotation))


def _check_call(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that do not fit *signature*.

    Raises:
        ArgumentError: one is missing, does not exist, or is given without its name.
    """
    names = [*signature.parameters][1:]
    for name in kwargs:
        if name not in names:
            raise ArgumentError("argument", name, "does not exist", names)
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        raise ArgumentError("arguments", UNSET, f"do not fit: {error}. Pass all but the first by name") from None
    for name, parameter in signature.parameters.items():
        if parameter.default is parameter.empty and name not in bound:
            example = f', such as over="{USUAL_RANGE}"' if name == "over" else ""
            raise ArgumentError(name, UNSET, f"is missing{example}")
