"""OpenAPI 3.1 descriptions of both services, generated from the types that they use.

Bodies and answers come from the structs of `wire`, rows and the names of metrics and dimensions from the catalog,
events from their field rules. Only addresses, parameters and statuses are written here
(Wire 5.5, Service descriptions).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Union

import msgspec

from gamelens.catalog import DIMENSIONS, METRICS, Metric
from gamelens.wire.event_validator import LENIENT, RejectedEvent
from gamelens.wire.intervals import WireInterval
from gamelens.wire.limits import FILTER_DEPTH, FILTER_OBJECTS
from gamelens.wire.queries import Limit, QueryBody
from gamelens.wire.remote_config import InitAnswer, InitRequest, InitUnchanged, V2FullAnswer, V2InitAnswer
from gamelens.wire.results import ErrorBody, Game, GroupAnswer, SeriesAnswer, SplitAnswer, Studio, Values

Schema = dict[str, Any]

METRICS_ADDRESS: Final = "/metrics/v1/openapi.json"
_INSTALL_DIMENSIONS: Final = [name for name, dimension in DIMENSIONS.items() if dimension.level not in ("ad", "ilrd")]
_COMPONENTS: Final = "#/components/schemas/{name}"
_REASONS: Final = {
    400: "cannot be read",
    401: "not authorised",
    408: "the body was not complete in time",
    413: "the body is too large",
    422: "readable but not allowed",
    429: "above the rate limit of the organisation",
    503: "no room for it at the moment, or the lake is damaged and being rebuilt: send it again",
}


class Message(msgspec.Struct, frozen=True):
    """Reason why the collector refused a request."""

    message: str


@cache
def metrics_description() -> bytes:
    """Return the description of the metrics service as JSON (Wire 2.1, Metrics addresses)."""
    types = _Types(
        [
            QueryBody,
            ErrorBody,
            Values,
            Studio,
            Game,
            *(answer for metric in METRICS.values() for answer in _answers(metric)),
        ]
    )
    names = types.named("Dimension", {"enum": list(DIMENSIONS)})
    types.named("Filter", _filter("Filter", DIMENSIONS))
    types.named("CohortFilter", _filter("CohortFilter", _INSTALL_DIMENSIONS))
    # Dimensions in the query kinds are those names, and each kind may have a limit.
    group, split, series = (types.components[kind]["properties"] for kind in ("Group", "Split", "Timeseries"))
    group["dimension"] = names
    split["limit"] = series["limit"] = group["limit"]
    split["dimensions"] |= {"prefixItems": [names, names], "uniqueItems": True}
    paths = {
        "/metrics/v1/metrics": _get(types, "Names of the metrics.", list[str], values=METRICS),
        **{f"/metrics/v1/metrics/{name}": _post_query(types, metric) for name, metric in METRICS.items()},
        "/metrics/v1/interval": _get(
            types,
            "What is available to query.",
            WireInterval,
            headers={"X-Data-Edition": _EDITION, "X-Sandbox-Scenario": _SCENARIO, "X-Dated-By-Arrival": _DATED},
        ),
        "/metrics/v1/dimensions": _get(types, "Names of the dimensions.", list[str], values=DIMENSIONS),
        "/metrics/v1/dimensions/{dimension}": _get(
            types,
            "Values of a dimension that were sent in the interval.",
            Values,
            parameters=[
                {"name": "dimension", "in": "path", "required": True, "schema": names},
                _INTERVAL,
                _ids("games"),
                _ids("studios"),
                {"name": "limit", "in": "query", "schema": _schema(Limit)},
            ],
        ),
        "/metrics/v1/studios": _get(
            types, "Studios that sent data in the interval.", list[Studio], parameters=[_INTERVAL]
        ),
        "/metrics/v1/games": _get(
            types, "Games that sent data in the interval.", list[Game], parameters=[_INTERVAL, _ids("studios")]
        ),
        METRICS_ADDRESS: {
            "get": {"summary": "This description.", "security": [], "responses": {"200": _json({"type": "object"})}}
        },
    }
    key = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    return _encode("Metrics", paths, types, security={"key": key})


@cache
def collector_description() -> bytes:
    """Return the description of the collector as JSON (Wire 1.1, Collector addresses)."""
    answers = (V2InitAnswer, V2FullAnswer, InitUnchanged, InitAnswer)
    types = _Types([list[RejectedEvent], InitRequest, Message, *answers, *LENIENT.types])
    # A body without events is refused in the same shape, without the field `event`.
    rejected = types.components["RejectedEvent"]
    rejected["properties"]["event"] = {}
    in_path, in_query = (
        {"name": "game_key", "in": location, "required": True, "schema": _GAME_KEY} for location in _LOCATIONS
    )
    configs = [
        {"name": "interval_seconds", "in": "query", "schema": _SECONDS},
        {"name": "configs_hash", "in": "query", "schema": {"type": "string"}},
        {"name": "config_vsn_supported", "in": "query", "schema": {"type": "string"}},
    ]
    events = list[Union[LENIENT.types]]  # type: ignore[name-defined]  # noqa: UP007
    init = Union[InitRequest, tuple[InitRequest]]  # noqa: UP007
    nothing = {"type": "object", "maxProperties": 0, "description": "or no body at all, for custom integrations"}
    paths = {
        "/v2/{game_key}/events": _post_signed(types, "Collect events.", events, {200: nothing}, [in_path]),
        "/v2/{game_key}/init": _post_signed(
            types,
            "Start a session.",
            init,
            {200: _any([types.ref(V2InitAnswer), types.ref(V2FullAnswer)]), 201: types.ref(V2FullAnswer)},
            [in_path, *configs],
        ),
        "/remote_configs/v1/init": _post_signed(
            types,
            "Configs and experiment of a player.",
            init,
            {200: types.ref(InitUnchanged), 201: types.ref(InitAnswer)},
            [in_query, *configs],
        ),
    }
    signature = {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "base64 of the HMAC-SHA256 of the body as sent, with the secret key",
    }
    return _encode("Collector", paths, types, security={"signature": signature})


DESCRIPTIONS: Final[dict[str, Callable[[], bytes]]] = {
    "collector": collector_description,
    "metrics": metrics_description,
}


class _Types:
    """Schemas of types and the components that they refer to."""

    def __init__(self, types: Iterable[Any]) -> None:
        self.components: dict[str, Schema]
        _, self.components = msgspec.json.schema_components(types, ref_template=_COMPONENTS)
        for component in self.components.values():
            if "description" in component:
                component["description"] = inspect.cleandoc(component["description"])
            for schema in component.get("properties", {}).values():
                for inner in (schema, *schema.get("anyOf", [])):
                    for python, portable in _DIALECT.items() if "pattern" in inner else ():
                        inner["pattern"] = inner["pattern"].replace(python, portable)

    def ref(self, type_: Any) -> Schema:
        """Return the schema that refers to one of these types."""
        (schema,), _ = msgspec.json.schema_components([type_], ref_template=_COMPONENTS)
        return schema

    def named(self, name: str, schema: Schema) -> Schema:
        """Add *schema* as a component and return a reference to it."""
        self.components[name] = schema
        return {"$ref": _COMPONENTS.format(name=name)}


_GAME_KEY: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SECONDS: Final = {"type": "integer", "minimum": 0, "maximum": 10**12 - 1}
_LOCATIONS: Final = ("path", "query")
_DIALECT: Final = {"(?a:": "(?:", r"\s": r" \t\n\r\f\v", r"\!": "!", r"\Z": "$"}
"""Python's patterns as every dialect of regular expressions reads them alike."""


def _schema(type_: Any) -> Schema:
    return msgspec.json.schema(type_)


_EDITION: Final = {
    "description": "Id of the collection of events that the answers count. It stays while events are added and "
    "processed, and changes after a reset, after damage to the store and with another state directory.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_SCENARIO: Final = {
    "description": "The scenario that the sandbox was populated with, percent-encoded; absent where it was not set.",
    "required": False,
    "schema": {"type": "string"},
}
_DATED: Final = {
    "description": "Numbers of processed events that are dated by their arrival, by reason, as a JSON object; absent "
    "where there are none.",
    "required": False,
    "schema": {"type": "string"},
}
_INTERVAL: Final = {"name": "interval", "in": "query", "required": True, "schema": _schema(WireInterval)}


def _ids(name: str) -> Schema:
    return {"name": name, "in": "query", "schema": {"type": "array", "items": {"type": "string"}}, "explode": True}


@cache
def _answers(metric: Metric) -> list[Any]:
    """Return the answer types of a metric, one for each query kind, with its fields and all dimensions in a row."""
    count = Annotated[int, msgspec.Meta(ge=0)]
    fields: list[Any] = [
        (field.name, count if field.kind == "count" else Union[float, None])  # noqa: UP007
        for field in metric.fields
    ]
    fields += [(name, Union[str, None, msgspec.UnsetType], msgspec.UNSET) for name in DIMENSIONS]  # noqa: UP007
    row = msgspec.defstruct(
        f"{metric.name}_row", fields, forbid_unknown_fields=True, namespace={"__doc__": f"One row: {metric.meaning}."}
    )
    shapes = [GroupAnswer, SplitAnswer, SeriesAnswer] if metric.kinds != "retention" else [SeriesAnswer]
    return [shape[row] for shape in shapes]  # type: ignore[index]


def _filter(name: str, dimensions: Iterable[str]) -> Schema:
    """Return the schema of the filter object *name* (Wire 2.7, Filters).

    An object has one key: a dimension or a combination.
    """
    inner = {"$ref": _COMPONENTS.format(name=name)}
    several = {"type": "array", "items": inner, "minItems": 1}
    value = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    return {
        "type": "object",
        "description": f"nested to depth {FILTER_DEPTH}, of at most {FILTER_OBJECTS} objects",
        "properties": {**dict.fromkeys(dimensions, value), "and": several, "or": several, "not": inner},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


def _post_query(types: _Types, metric: Metric) -> Schema:
    bodies = [_body(types, metric, required) for required in _REQUIRED_FIELDS[metric.kinds]]
    answers = [types.ref(answer) for answer in _answers(metric)]
    return {
        "post": {
            "summary": f"{metric.name}: {metric.meaning}",
            "operationId": metric.name,
            "requestBody": {"required": True, **_content(_any(bodies))},
            "responses": {"200": _json(_any(answers)), **_refusals(types, 400, 401, 408, 413, 422, 429, 503)},
        }
    }


_REQUIRED_FIELDS: Final[Mapping[str, list[tuple[str, ...]]]] = {
    "plain": [("interval", "granularity", "query")],
    "per game": [("interval", "granularity", "query", "game"), ("interval", "granularity", "split_by")],
    "retention": [("interval", "since_days_ago", "split_by")],
}


def _body(types: _Types, metric: Metric, required: tuple[str, ...]) -> Schema:
    """Return the schema of a query body of one query kind, given the fields it requires."""
    fields = types.components["QueryBody"]["properties"]
    names = [*required, "filter", "games", "studios"]
    if metric.takes_since_days_ago and "since_days_ago" not in required:
        names.append("since_days_ago")
    cohort = metric.kinds == "retention"
    overrides: dict[str, Schema] = {
        "filter": {
            "anyOf": [{"$ref": _COMPONENTS.format(name="CohortFilter" if cohort else "Filter")}, {"type": "null"}]
        },
        "split_by": {"enum": _INSTALL_DIMENSIONS if cohort else list(DIMENSIONS)},
    }
    if cohort:
        names.append("granularity")
        overrides["granularity"] = {"enum": ["day", None]}
    properties = {name: overrides.get(name) or fields[name] for name in names}
    for name in required:  # a required field cannot be null
        kinds = properties[name].get("anyOf", [])
        properties[name] = next((kind for kind in kinds if kind != {"type": "null"}), properties[name])
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _get(
    types: _Types,
    summary: str,
    answer: Any,
    *,
    parameters: list[Any] | None = None,
    values: Iterable[str] = (),
    headers: Schema | None = None,
) -> Schema:
    schema = types.ref(answer)
    if values:
        schema = {**schema, "items": {"enum": list(values)}}
    statuses: tuple[int, ...] = (400, 401, 422, 429) if parameters else (401, 429)
    if parameters or headers:  # it is read from the lake
        statuses = (*statuses, 503)
    success = _json(schema) | ({"headers": headers} if headers else {})
    described = {
        "summary": summary,
        "parameters": parameters or [],
        "responses": {"200": success, **_refusals(types, *statuses)},
    }
    return {"get": described}


def _post_signed(
    types: _Types, summary: str, body: Any, answers: dict[int, Schema], parameters: list[Any]
) -> dict[str, Any]:
    refusals = {str(status): _json(types.ref(Message), _REASONS[status]) for status in (401, 408, 413, 503)}
    described = {
        "summary": summary,
        "parameters": parameters,
        "requestBody": {"required": True, **_content(types.ref(body))},
        "responses": {
            **{str(status): _json(schema) for status, schema in answers.items()},
            "400": _json(types.ref(list[RejectedEvent]), _REASONS[400]),
            **refusals,
        },
    }
    return {"post": described}


def _refusals(types: _Types, *statuses: int) -> Schema:
    refusals = {str(status): _json(types.ref(ErrorBody), _REASONS[status]) for status in statuses}
    if "429" in refusals:
        refusals["429"]["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": True}}
    return refusals


def _json(schema: Schema, description: str = "as asked") -> Schema:
    return {"description": description, **_content(schema)}


def _content(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}


def _any(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _encode(name: str, paths: Schema, types: _Types, *, security: dict[str, Schema]) -> bytes:
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": f"{name} service of the gamelens sandbox",
                "version": "v1" if name == "Metrics" else "v2",
            },
            "security": [{scheme: []} for scheme in security],
            "paths": paths,
            "components": {"schemas": types.components, "securitySchemes": security},
        }
    )
