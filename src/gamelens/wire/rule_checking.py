"""A rule for a JSON value, read as a msgspec type and as a list of violations.

The type is fast and accepts good values; the walk is slow and names every broken rule of a bad one. A property test
holds the two together. Wire 1.9, Error types, has the names and paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Union

import msgspec

from gamelens.errors import suggests_names

JsonKind = Literal["any", "string", "integer", "string or integer", "number", "boolean", "scalar", "object", "array"]
"""Type of a JSON value. A scalar is a string, a number or a boolean."""


class RequiredSibling(msgspec.Struct, frozen=True):
    """A condition on another field of the same object, without which a field is not allowed."""

    field: str
    pattern: str

    def allows(self, value: object) -> bool:
        """Return whether the *value* of the other field satisfies the condition."""
        return isinstance(value, str) and re.search(self.pattern, value) is not None


class FieldRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of one JSON value."""

    kind: JsonKind = "string"
    shortest: int | None = None  # numbers of characters, items or entries
    longest: int | None = None
    pattern: str | None = None  # regular expression that a string must match
    least: int | None = None  # bounds of a number
    most: int | None = None
    enum: tuple[str, ...] = ()  # allowed strings; empty allows all
    nullable: bool = False
    may_be_blank: bool = False  # whether null and an empty string pass, as if the field were absent
    sibling: RequiredSibling | None = None  # condition on another field, without which this one is not allowed
    # rule of every item of an array, and of every entry of an object that *members* does not name
    items: FieldRule | None = None
    names: str | None = None  # pattern of the names of those entries
    members: Mapping[str, FieldRule] = {}  # rules of the named entries of an object
    required: tuple[str, ...] = ()  # names of the entries that must be there
    is_closed: bool = False  # whether entries other than *members* are refused


@suggests_names
class Violation(msgspec.Struct, frozen=True):
    """One broken rule of an event.

    *error_type* is the collector's name for it (Wire 1.9, Error types). *path* is a JSON pointer, `/` for the event.
    """

    error_type: str
    path: str


def violations_of(value: Any, rule: FieldRule, path: str = "") -> Iterator[Violation]:
    """Yield every violation of *rule* in a decoded *value*, at *path*.

    A wrong type or size is reported alone.
    """
    here = path or "/"
    if rule.kind == "any" or (value is None and rule.nullable) or (rule.may_be_blank and value in (None, "")):
        return
    # A boolean is a whole number to Python, and not to JSON.
    if not isinstance(value, _PYTHON_TYPES[rule.kind]) or (isinstance(value, bool) and rule.kind not in _WITH_BOOLEANS):
        yield Violation("wrong_type", here)
    elif isinstance(value, str | int | float):
        yield from (Violation(error_type, here) for error_type in _scalar_errors(value, rule))
    elif _is_outside(len(value), rule.shortest, rule.longest):
        yield Violation("wrong_size", here)
    elif isinstance(value, Mapping):
        yield from _member_violations(value, rule, path)
    elif rule.items is not None:
        for index, item in enumerate(value):
            yield from violations_of(item, rule.items, f"{path}/{index}")


def struct_of(name: str, rule: FieldRule, *, tag_field: str | None = None) -> type[msgspec.Struct]:
    """Return the struct type, called *name*, that accepts the objects *rule* accepts.

    *tag_field* is the member that tells the struct by that name. An open object gets no fields for members that may be
    anything: they stay unread, as unknown ones do.
    """
    fields: list[Any] = []
    for member, member_rule in rule.members.items():
        if member in rule.required and member != tag_field:
            fields.append((member, _type_of(member_rule, name=f"{name}_{member}")))
        elif member != tag_field and (rule.is_closed or member_rule.kind != "any"):
            optional = _type_of(member_rule, name=f"{name}_{member}")
            fields.append((member, Union[optional, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
    siblings = {member: its.sibling for member, its in rule.members.items() if its.sibling is not None}

    def check_siblings(struct: msgspec.Struct) -> None:  # msgspec has no type for them
        for member, sibling in siblings.items():
            if getattr(struct, member) is not msgspec.UNSET and not sibling.allows(getattr(struct, sibling.field)):
                raise ValueError(f"{member} is not allowed here")

    return msgspec.defstruct(
        name,
        fields,
        namespace={"__post_init__": check_siblings} if siblings else {},
        frozen=True,
        kw_only=True,
        tag_field=tag_field,
        tag=name if tag_field else None,
        forbid_unknown_fields=rule.is_closed,
        gc=False,
    )


def _scalar_errors(value: str | float, rule: FieldRule) -> Iterator[str]:
    if not isinstance(value, str):
        if _is_outside(value, rule.least, rule.most):
            yield "not_in_range"
        return
    if rule.enum and value not in rule.enum:
        yield "not_in_enum"
    if rule.pattern is not None and not re.search(rule.pattern, value):
        yield "no_match"
    if _is_outside(len(value), rule.shortest, rule.longest):
        yield "wrong_length"


def _member_violations(value: Mapping[str, Any], rule: FieldRule, path: str) -> Iterator[Violation]:
    yield from (Violation("missing_required_property", f"{path}/{name}") for name in rule.required if name not in value)
    for name, member in rule.members.items():
        if name in value:
            yield from violations_of(value[name], member, f"{path}/{name}")
            if member.sibling is not None and not member.sibling.allows(value.get(member.sibling.field)):
                yield Violation("no_extra_properties_allowed", f"{path}/{name}")
    if not (rule.is_closed or rule.items):
        return
    for name in (name for name in value if name not in rule.members):
        here = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if rule.is_closed:
            yield Violation("no_extra_properties_allowed", here)
        if rule.names is not None and not re.search(rule.names, name):
            yield Violation("no_match", here)
        if rule.items is not None:
            yield from violations_of(value[name], rule.items, here)


def _is_outside(value: float, least: int | None, most: int | None) -> bool:
    return (least is not None and value < least) or (most is not None and value > most)


_WITH_BOOLEANS: Final = ("boolean", "scalar")
_PYTHON_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "string or integer": (str, int),
    "number": (int, float),
    "boolean": bool,
    "scalar": (str, int, float, bool),
    "object": Mapping,
    "array": list,
}


def _type_of(rule: FieldRule, *, name: str) -> Any:
    """Return the type that accepts exactly what *rule* accepts.

    *name* is for the structs of nested objects.
    """
    return _type_or_blank(rule, name=name) if rule.may_be_blank else _filled_type_of(rule, name=name)


def _filled_type_of(rule: FieldRule, *, name: str) -> Any:
    items = Any if rule.items is None else _type_of(rule.items, name=name)
    type_: Any
    match rule.kind:
        case "any":
            type_ = Any
        case "string" if rule.enum:
            type_ = Literal[rule.enum]
        case "string":
            type_ = _bounded(str, min_length=rule.shortest, max_length=rule.longest, pattern=rule.pattern)
        case "scalar":
            text = _bounded(str, min_length=rule.shortest, max_length=rule.longest)
            type_ = Union[text, int, float, bool]  # noqa: UP007
        case "integer":
            type_ = _bounded(int, ge=rule.least, le=rule.most)
        case "object" if rule.members:
            type_ = struct_of(name, rule)
        case "object":
            entries = dict[_bounded(str, pattern=rule.names), items]  # type: ignore[misc, valid-type]
            type_ = _bounded(entries, min_length=rule.shortest, max_length=rule.longest)
        case "array":
            type_ = _bounded(list[items], min_length=rule.shortest, max_length=rule.longest)  # type: ignore[valid-type]
        case "boolean":
            type_ = bool
        case "number":
            type_ = Union[int, float]  # noqa: UP007
        case "string or integer":
            type_ = Union[str, int]  # noqa: UP007
    return Union[type_, None] if rule.nullable else type_  # noqa: UP007


def _type_or_blank(rule: FieldRule, *, name: str) -> Any:
    """Return the type that accepts what *rule* accepts, null and an empty string."""
    rule = msgspec.structs.replace(rule, may_be_blank=False, nullable=True)
    if rule.kind != "string":
        return Union[_type_of(rule, name=name), Literal[""]]  # noqa: UP007
    enum = ("", *rule.enum) if rule.enum else ()
    pattern = rule.pattern and rf"^\Z|{rule.pattern}"
    return _type_of(msgspec.structs.replace(rule, enum=enum, pattern=pattern, shortest=None), name=name)


def _bounded(type_: Any, **bounds: Any) -> Any:
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[type_, msgspec.Meta(**given)] if given else type_
