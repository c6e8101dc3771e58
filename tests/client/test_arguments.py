"""Arguments of a query: one definition, which both clients show and check alike."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from gamelens.client.async_client import AsyncClient
from gamelens.client.query.arguments import GAME_ID, QuerySpec, as_filter, one_of, query_arguments, retention_arguments
from gamelens.client.query.signatures import arguments_of, awaited, takes, typed
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.wire.filters import dim
from support.query_arguments import given
from support.scripted_service import KEY, Script

CLIENTS = [Client, AsyncClient]
METHODS = ["query", "plan", "retention"]


class Calculator:
    """A class with a method that declares its arguments, and two that take them from there."""

    @typed
    def multiply(self, number: int, *, times: int = 2) -> int:
        """Multiply.

        Args:
            number: a factor.
            times: the other, which
                is 2.

        Raises:
            TypeError: never.
        """
        return number * times

    @takes(multiply, lambda _, given: given["number"] * given["times"])
    def show(self, product: int) -> str:
        """Return the product as text.

        Raises:
            KeyError: never.
        """
        return self._text(product)

    @takes(multiply, lambda _, given: given["number"] * given["times"])
    def repeat(self, product: int) -> int:
        """Return the product."""
        return product

    def _text(self, product: int) -> str:
        return str(product)


class AsyncCalculator:
    """The same, awaited."""

    show = awaited(Calculator.show)

    async def _text(self, product: int) -> str:
        return str(product)


def test_a_method_gets_the_parsed_value() -> None:
    """The arguments are passed on, and their defaults apply."""
    assert (Calculator().show(2), Calculator().show(2, times=3)) == ("4", "6")


def test_a_coroutine_checks_its_arguments_when_it_is_awaited() -> None:
    """As any coroutine does."""
    assert inspect.iscoroutinefunction(AsyncCalculator.show)
    waiting = AsyncCalculator().show(2, tims=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Did you mean `times`"):
        asyncio.run(waiting)
    assert asyncio.run(AsyncCalculator().show(2)) == "4"


@pytest.mark.parametrize("method", [Calculator.show, AsyncCalculator.show])
def test_the_signature_is_that_of_the_declaration(method: Callable[..., Any]) -> None:
    """With `self` before and the method's own result after it."""
    assert str(inspect.signature(method)) == "(self, number: int, *, times: int = 2) -> str"


def test_the_docstring_has_the_arguments_before_the_errors() -> None:
    """The order of the sections is the same in all docstrings."""
    assert inspect.getdoc(Calculator.show) == (
        "Return the product as text.\n\nArgs:\n    number: a factor.\n    times: the other, which\n        is 2.\n\n"
        "Raises:\n    KeyError: never."
    )


def test_a_docstring_without_errors_ends_with_the_arguments() -> None:
    """No empty section is added."""
    assert (inspect.getdoc(Calculator.repeat) or "").endswith("is 2.")


def test_an_argument_has_its_words_on_one_line() -> None:
    """The command line makes its options of them."""
    number, times = arguments_of(Calculator.show)
    assert (number.type, number.default, number.words) == ("int", inspect.Parameter.empty, "a factor.")
    assert (times.type, times.default, times.words) == ("int", 2, "the other, which is 2.")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_help_of_both_clients_describes_every_argument(client: type, method: str) -> None:
    """Each keyword has its line under `Args:`, in the order of the signature."""
    text = inspect.getdoc(getattr(client, method)) or ""
    section = text.partition("\n\nArgs:\n")[2].partition("\n\n")[0]
    described = [line.strip().partition(":")[0] for line in section.splitlines() if line[4:5] != " "]
    assert ["self", *described] == list(inspect.signature(getattr(client, method)).parameters)


@pytest.mark.parametrize("method", METHODS)
def test_both_clients_have_one_signature(method: str) -> None:
    """`help`, `?` and keyword completion read it from `inspect.signature`."""
    awaited_one, waiting = (inspect.signature(getattr(client, method)) for client in reversed(CLIENTS))
    assert awaited_one == waiting


@pytest.mark.parametrize("every", ["hour", "Day", ""])
def test_every_is_checked_like_any_other_word(every: str) -> None:
    """A granularity that does not exist is refused with the four that do."""
    with pytest.raises(BadQuery, match="is not allowed") as refused:
        QuerySpec(metrics=("revenue",), every=every)  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.allowed) == ("every", ("day", "week", "month", "all"))


def test_one_of_names_the_nearest_word() -> None:
    """A typo gets the word that was meant."""
    with pytest.raises(BadQuery, match="Did you mean `gaps`") as refused:
        one_of("on_error", "gap", ("raise", "gaps"))
    assert (refused.value.field, one_of("on_error", "gaps", ("raise", "gaps"))) == ("on_error", "gaps")


def test_the_arguments_of_a_query_become_a_spec_and_options() -> None:
    """Names become tuples, `game` the column of its id; options hold the rest."""
    arguments = query_arguments(
        given(Client.query, "revenue", by="game", over="2026-11-01", games=["1"], to="arrow", progress=False)
    )
    assert (arguments.spec.metrics, arguments.spec.dimensions, arguments.spec.games) == (
        ("revenue",),
        (GAME_ID,),
        ("1",),
    )
    assert (arguments.options.over, arguments.options.to, arguments.progress) == ("2026-11-01", "arrow", False)


def test_the_arguments_of_retention_become_ages() -> None:
    """One age or several."""
    assert retention_arguments(given(Client.retention, 7, over="2026-11-01")).spec.ages == (7,)
    assert retention_arguments(given(Client.retention, range(1, 4), over="2026-11-01")).spec.ages == (1, 2, 3)


def test_an_async_client_checks_arguments_when_awaited(script: Script) -> None:
    """A coroutine that is never awaited sends nothing, and one with a wrong argument sends nothing either."""

    async def main() -> None:
        pool = httpx.ASGITransport(script.app())
        async with AsyncClient(api_key=KEY, metrics_url="http://127.0.0.9:1", transport=pool) as client:
            waiting = client.query("revenue", over="2026-11-01", every="hour")  # type: ignore[arg-type]
            with pytest.raises(BadQuery, match="every"):
                await waiting

    asyncio.run(main())
    assert script.paths == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"metric": "revenue"}, "over is missing"),
        ({"metric": "revenue", "overr": "yesterday"}, "Did you mean `over`"),
    ],
)
def test_a_wrong_argument_is_named_in_our_words(lens: Client, arguments: dict[str, str], said: str) -> None:
    """It is a `TypeError` as well, which Python raises for it elsewhere."""
    with pytest.raises(BadQuery, match=said) as raised:
        lens.query(**arguments)  # type: ignore[arg-type]
    assert isinstance(raised.value, TypeError)


def test_a_filter_can_be_text() -> None:
    """The text of the command line is the filter of the expression."""
    assert as_filter('platform == "ios" and build != "2"') == (dim.platform == "ios") & ~(dim.build == "2")


def test_a_signature_names_no_type_of_this_project() -> None:
    """Tooltips and `help` show `str` and `list[str]`, not the names of our type aliases."""
    shown = str(inspect.signature(Client.query))
    assert "by: str | list[str] | None = None" in shown
    assert not any(name in shown for name in ("Names", "TimeRange", "Granularity", "OnError"))


@pytest.mark.parametrize("field", ["games", "studios"])
@pytest.mark.parametrize("method", ["query", "plan", "retention"])
def test_an_empty_list_is_not_all_and_not_nothing(lens: Client, method: str, field: str) -> None:
    """A list that a filter left empty is refused before anything is sent, instead of a number that is 0."""
    asked = {"days": [1]} if method == "retention" else {"metric": "revenue"}
    with pytest.raises(BadQuery, match=f"{field} = .* is empty"):
        getattr(lens, method)(**asked, over="yesterday", **{field: []})
