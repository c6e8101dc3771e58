"""A rule for a JSON value, read in two ways: as the msgspec type that accepts it, and as a walk that names every fault.

The type is the fast way, for what is good; the walk is the slow way, for what is not. A test holds the two together.
Error names and paths are those of Wire 1.9, Error types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Union

import msgspec

JsonKind = Literal["any", "string", "integer", "number", "boolean", "scalar", "object", "array"]
"""What a value is in JSON; a scalar is a string, a number or a boolean."""


class RequiredSibling(msgspec.Struct, frozen=True):
    """What another field of the same object must say, for a field to be there at all."""

    field: str
    pattern: str

    def allows(self, said: object) -> bool:
        """Whether the other field, which says *said*, does."""
        return isinstance(said, str) and re.search(self.pattern, said) is not None


class FieldRule(msgspec.Struct, frozen=True, kw_only=True):
    """What one value may be; lengths count characters of a string, items of an array, entries of an object.

    *each* is the rule of every item of an array, and of every entry of an object that *members* does not name; *names*
    is a pattern of those entries' names. A closed object has none of them.
    """

    kind: JsonKind = "string"
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    least: int | None = None
    most: int | None = None
    enum: tuple[str, ...] = ()
    nullable: bool = False
    beside: RequiredSibling | None = None
    each: FieldRule | None = None
    names: str | None = None
    members: Mapping[str, FieldRule] = {}
    required: tuple[str, ...] = ()
    is_closed: bool = False


class Violation(msgspec.Struct, frozen=True):
    """One broken rule of an event, as the collector names it; *path* is a JSON pointer, `/` the event itself."""

    error_type: str
    path: str


def violations_of(value: Any, rule: FieldRule, path: str = "") -> Iterator[Violation]:
    """Everything wrong with a decoded *value*; a wrong type or size is named alone."""
    here = path or "/"
    if rule.kind == "any" or (value is None and rule.nullable):
        return
    if not isinstance(value, _PYTHON_TYPES[rule.kind]) or (isinstance(value, bool) and rule.kind not in _WITH_BOOLEANS):
        yield Violation("wrong_type", here)
    elif isinstance(value, str):
        yield from (Violation(error_type, here) for error_type in _text_faults(value, rule))
    elif isinstance(value, int | float):
        if _is_outside(value, rule.least, rule.most):
            yield Violation("not_in_range", here)
    elif _is_outside(len(value), rule.shortest, rule.longest):
        yield Violation("wrong_size", here)
    elif isinstance(value, Mapping):
        yield from _member_faults(value, rule, path)
        yield from _entry_faults(value, rule, path)
    elif rule.each is not None:
        for place, item in enumerate(value):
            yield from violations_of(item, rule.each, f"{path}/{place}")


def struct_of(name: str, rule: FieldRule, *, tag_field: str | None = None) -> type[msgspec.Struct]:
    """The type of an object with members, called *name*; *tag_field* is the member that tells it by that name.

    An open object has no fields for members that may be anything: they are left unread, as unknown ones are.
    """
    fields: list[Any] = []
    for member, its in rule.members.items():
        if member in rule.required and member != tag_field:
            fields.append((member, _type_of(its, name=f"{name}_{member}")))
        elif member != tag_field and (rule.is_closed or its.kind != "any"):
            made = _type_of(its, name=f"{name}_{member}")
            fields.append((member, Union[made, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
    return msgspec.defstruct(
        name,
        fields,
        namespace=_joined(rule),
        frozen=True,
        kw_only=True,
        tag_field=tag_field,
        tag=name if tag_field else None,
        forbid_unknown_fields=rule.is_closed,
        gc=False,
    )


def _text_faults(value: str, rule: FieldRule) -> Iterator[str]:
    if rule.enum and value not in rule.enum:
        yield "not_in_enum"
    if rule.pattern is not None and not re.search(rule.pattern, value):
        yield "no_match"
    if _is_outside(len(value), rule.shortest, rule.longest):
        yield "wrong_length"


def _member_faults(value: Mapping[str, Any], rule: FieldRule, path: str) -> Iterator[Violation]:
    yield from (Violation("missing_required_property", f"{path}/{name}") for name in rule.required if name not in value)
    for name, member in rule.members.items():
        if name in value:
            yield from violations_of(value[name], member, f"{path}/{name}")
            if member.beside is not None and not member.beside.allows(value.get(member.beside.field)):
                yield Violation("no_extra_properties_allowed", f"{path}/{name}")


def _entry_faults(value: Mapping[str, Any], rule: FieldRule, path: str) -> Iterator[Violation]:
    """Of the entries that no member is named like."""
    if not (rule.is_closed or rule.each):
        return
    for name in (name for name in value if name not in rule.members):
        here = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if rule.is_closed:
            yield Violation("no_extra_properties_allowed", here)
        if rule.names is not None and not re.search(rule.names, name):
            yield Violation("no_match", here)
        if rule.each is not None:
            yield from violations_of(value[name], rule.each, here)


def _is_outside(value: float, least: int | None, most: int | None) -> bool:
    return (least is not None and value < least) or (most is not None and value > most)


_WITH_BOOLEANS: Final = ("boolean", "scalar")
_PYTHON_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "scalar": (str, int, float, bool),
    "object": Mapping,
    "array": list,
}
_MSGSPEC_TYPES: Final[dict[str, Any]] = {
    "any": Any,
    "number": Union[int, float],  # noqa: UP007
    "boolean": bool,
    "object": dict,
    "array": list,
}


def _type_of(rule: FieldRule, *, name: str) -> Any:
    """The type that accepts exactly what *rule* accepts; *name* is for the objects in it."""
    made: Any
    match rule.kind:
        case "string" if rule.enum:
            made = Literal[rule.enum]
        case "string":
            made = _bounded(str, min_length=rule.shortest, max_length=rule.longest, pattern=rule.pattern)
        case "scalar":
            text = _bounded(str, min_length=rule.shortest, max_length=rule.longest)
            made = Union[text, int, float, bool]  # noqa: UP007
        case "integer":
            made = _bounded(int, ge=rule.least, le=rule.most)
        case "object" if rule.members:
            made = struct_of(name, rule)
        case "object":
            entries = _MSGSPEC_TYPES["object"][_bounded(str, pattern=rule.names), _each(rule, name=name)]
            made = _bounded(entries, min_length=rule.shortest, max_length=rule.longest)
        case "array":
            items = _MSGSPEC_TYPES["array"][_each(rule, name=name)]
            made = _bounded(items, min_length=rule.shortest, max_length=rule.longest)
        case kind:
            made = _MSGSPEC_TYPES[kind]
    return Union[made, None] if rule.nullable else made  # noqa: UP007


def _each(rule: FieldRule, *, name: str) -> Any:
    return Any if rule.each is None else _type_of(rule.each, name=name)


def _bounded(made: Any, **bounds: Any) -> Any:
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[made, msgspec.Meta(**given)] if given else made


def _joined(rule: FieldRule) -> dict[str, Any]:
    """What a struct does when made, where one member depends on another; msgspec has no type for that."""
    joined = {name: member.beside for name, member in rule.members.items() if member.beside is not None}

    def refuse_alone(made: msgspec.Struct) -> None:
        for name, beside in joined.items():
            if getattr(made, name) is not msgspec.UNSET and not beside.allows(getattr(made, beside.field)):
                raise ValueError(f"{name} has no place here")

    return {"__post_init__": refuse_alone} if joined else {}
