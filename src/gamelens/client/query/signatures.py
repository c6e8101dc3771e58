"""Signatures that methods take from a parser of arguments, in plain types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, cast, get_args

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

_WORDS: Final = {
    "Fields": Fields,
    "FrameKind": FrameKind,
    "Granularity": Granularity,
    "OnError": OnError,
    "WhenUnavailable": WhenUnavailable,
}
_PLAIN: Final = {
    "Names": "str | list[str]",
    "TimeRange": "str | date | tuple | Interval",
    "Top": "int | dict",
    "Where": "str | Filter | dict",
    **{name: " | ".join(f'"{word}"' for word in get_args(words)) for name, words in _WORDS.items()},
}


class PlainType(str):
    """A type in a signature that people read, without the names that only this project knows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def with_plain_types(function: S) -> S:
    """Return *function* with plain types in the signature that `help` and tooltips show."""
    signature = inspect.signature(cast("Callable[..., Any]", function))
    plain = [each.replace(annotation=_plain(each.annotation)) for each in signature.parameters.values()]
    cast("Any", function).__signature__ = signature.replace(
        parameters=plain, return_annotation=_plain(signature.return_annotation)
    )
    return function


def _plain(annotation: object) -> object:
    """Return *annotation*, which is text or nothing, in plain types."""
    if not isinstance(annotation, str):
        return annotation
    return PlainType(re.sub(r"\w+", lambda word: _PLAIN.get(word[0], word[0]), annotation))


def accepts(parse: Callable[P, Q]) -> Callable[[Callable[[S, Q], R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator that gives a method the parameters of *parse*.

    The method itself takes one argument, the value that *parse* returns. Type checkers, `help` and completion see the
    parameters of *parse*; the docstring of the method gets its `Args:`. A coroutine method stays one: its arguments
    are checked when it is awaited.
    """

    def decorate(method: Callable[[S, Q], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            _check_call(parse, args, kwargs)
            return method(self, parse(*args, **kwargs))

        @wraps(method)
        async def call_async(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            _check_call(parse, args, kwargs)
            return await cast("Any", method(self, parse(*args, **kwargs)))

        is_async = inspect.iscoroutinefunction(method)
        decorated = cast("Callable[Concatenate[S, P], R]", call_async if is_async else call)
        _show_parameters(decorated, method, parse)
        return decorated

    return decorate


class ArgumentError(BadQuery, TypeError):
    """An argument that is missing or does not exist."""

    def amended(self, call: str) -> str:
        """Return *call* with the argument that was meant."""
        if self.is_missing and self.field == "over":
            return with_argument(call, f'over="{USUAL_RANGE}"')
        return super().amended(call)


def _check_call(parse: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that *parse* does not take.

    Raises:
        ArgumentError: one is missing, does not exist, or is given without its name.
    """
    signature = inspect.signature(parse)
    for name in kwargs:
        if name not in signature.parameters:
            raise ArgumentError("argument", name, "does not exist", signature.parameters)
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        raise ArgumentError("arguments", UNSET, f"do not fit: {error}. All but the first need their name") from None
    for name, parameter in signature.parameters.items():
        if parameter.default is parameter.empty and name not in bound:
            raise ArgumentError(
                name, UNSET, "is missing" + (f', such as over="{USUAL_RANGE}"' if name == "over" else "")
            )


def _show_parameters(decorated: Any, method: Callable[..., Any], parse: Callable[..., Any]) -> None:
    """Give *decorated* the signature and docstring of *method* with the parameters of *parse*."""
    signature = inspect.signature(method)
    first = next(iter(signature.parameters.values()))
    decorated.__signature__ = signature.replace(parameters=[first, *inspect.signature(parse).parameters.values()])
    del decorated.__wrapped__  # `inspect.unwrap` would lead back to *method* and its one parameter
    decorated.__annotations__ = {**parse.__annotations__, "return": method.__annotations__["return"]}
    decorated.__doc__ = with_arguments_of(parse, inspect.getdoc(method) or "")


def with_arguments_of(parse: Callable[..., Any], doc: str) -> str:
    """Return *doc* with the `Args:` section of *parse* before its own `Raises:`."""
    arguments = (inspect.getdoc(parse) or "").partition("\n\nArgs:")[2].partition("\n\nRaises:")[0]
    text, heading, errors = doc.partition("\n\nRaises:")
    return f"{text}\n\nArgs:{arguments}{heading}{errors}"
