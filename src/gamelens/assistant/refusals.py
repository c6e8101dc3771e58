"""Errors as refusals: a code, a sentence, and the call that would work."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any, Final

import msgspec
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from gamelens._text import one_line
from gamelens.assistant.call_records import ToolCall
from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    NotAdditive,
    NotRecorded,
    NotYetAvailable,
    PartialResult,
    RateLimited,
    ServiceError,
    Truncated,
    Unreachable,
    with_argument,
)

CODES: Final[dict[type[Exception], str]] = {
    AuthError: "not_authorised",
    NotAdditive: "not_additive",
    NotRecorded: "not_recorded",
    NotYetAvailable: "not_yet_available",
    PartialResult: "partial_result",
    RateLimited: "rate_limited",
    ServiceError: "service_error",
    Truncated: "truncated",
    Unreachable: "unreachable",
}
_MOST_LETTERS: Final = 1500
_TOP: Final = "top=20"
_QUOTED: Final = re.compile("'([^']*)'")


def refusal_of(error: BaseException | None, call: ToolCall, takes: Collection[str]) -> CallToolResult:
    """Return what the model reads in place of an answer to *call*, which failed with *error*.

    *takes* are the arguments of the tool.
    """
    match error:
        case BadQuery():
            code = "unknown_name" if error.allowed else "bad_argument"
            return refusal(code, str(error), error.amended(call.to_text()), nearest=error.did_you_mean)
        case Truncated():
            return refusal("truncated", str(error), with_argument(call.to_text(), _TOP))
        case NotAdditive():
            return refusal("not_additive", str(error), use=error.use)
        case GamelensError():
            return refusal(CODES.get(type(error), "refused"), str(error), error.amended(call.to_text()))
        case ValidationError():
            return _bad_arguments(error, call, takes)
    return refusal("defect", f"{type(error).__name__}: a defect of gamelens. The server's log has the traceback")


def refusal(code: str, sentence: str, call: str = "", **hints: str | None) -> CallToolResult:
    """Return a refusal with *hints*, and with *call*, Python source that would work.

    The call is given as a tool and its arguments.
    """
    body: dict[str, Any] = {"refused": code, "sentence": one_line(sentence)[:_MOST_LETTERS]}
    if call:
        body["try"] = _call_of(call)
    body |= {name: one_line(hint) for name, hint in hints.items() if hint}
    text = msgspec.json.encode(body).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _call_of(source: str) -> dict[str, Any]:
    """Return the call that *source* writes, whose arguments are literals."""
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)  # noqa: S101 - `ToolCall.to_text` writes nothing else
    return {
        "tool": ast.unparse(node.func),
        "arguments": {str(word.arg): ast.literal_eval(word.value) for word in node.keywords},
    }


def _bad_arguments(error: ValidationError, call: ToolCall, takes: Collection[str]) -> CallToolResult:
    """Return what is wrong with the arguments of *call*: each name, its value and the rule that it breaks."""
    faults: dict[str, BadQuery] = {}
    for fault in error.errors(include_url=False):
        name, value = str(fault["loc"][0]), fault["input"]
        match fault["type"]:
            case "extra_forbidden":
                rule = f"is not an argument of {call.tool}"
                if name in ("game", "games") and "where" in takes:
                    rule += """: narrow with where='game_id == "ID"', ids are in catalogue(of="games"), or by="game\""""
                faults[name] = BadQuery("argument", name, rule, sorted(takes))
            case "missing":
                faults[name] = BadQuery(name, msgspec.UNSET, f"is missing: {call.tool} needs it")
            case "literal_error":
                allowed = _QUOTED.findall(fault["ctx"]["expected"])
                faults[name] = BadQuery(name, value, "is not an allowed value", allowed)
            case _:
                earlier = f"{faults[name].rule}, or: " if name in faults else ""
                shown = value if len(fault["loc"]) == 1 else call.arguments.get(name, value)
                faults[name] = BadQuery(name, shown, f"{earlier}{fault['msg'][:1].lower()}{fault['msg'][1:]}")
    sentence = " ".join(map(str, faults.values()))
    if len(faults) > 1:
        return refusal("bad_argument", sentence)
    ((name, only),) = faults.items()
    nearest = only.did_you_mean
    if nearest is None:
        return refusal("bad_argument", sentence)
    if only.field != "argument":
        valid = {**call.arguments, name: nearest}
    else:  # under its right name, unless that has a value already
        valid = {nearest if argument == name else argument: value for argument, value in call.arguments.items()}
    works = ToolCall(call.tool, valid).to_text() if len(valid) == len(call.arguments) else ""
    return refusal("bad_argument", sentence, works, nearest=nearest)
