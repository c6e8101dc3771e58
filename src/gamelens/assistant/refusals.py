"""Errors as refusals: a code, a sentence, and the call that would work."""

from __future__ import annotations

import ast
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


def refusal_of(error: BaseException | None, call: ToolCall) -> CallToolResult:
    """Return what the model reads in place of an answer to *call*, which failed with *error*."""
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
            return refusal("bad_argument", _faults(error))
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


def _faults(error: ValidationError) -> str:
    """Return each argument that has another shape than the schema says, and why."""
    faults = {".".join(map(str, fault["loc"][:1])): fault["msg"] for fault in error.errors(include_url=False)}
    return "; ".join(f"{name}: {message}" for name, message in faults.items())
