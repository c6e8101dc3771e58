"""The catalog: every metric and alias with its fields and rules, and every dimension.

`Catalog` adds the own metrics of a client. CONTRIBUTING says what else a new metric or dimension takes.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import msgspec

from gamelens._text import shortened
from gamelens.errors import BadQuery, suggests_names
from gamelens.formulas import (
    MOST_STEPS,
    Constant,
    Divide,
    Expression,
    Formula,
    MetricFormula,
    Operation,
    Variable,
    names_in,
    parse_formula,
    steps_in,
    unit_of,
    written_out,
)
from gamelens.wire.dimensions import DIMENSIONS as DIMENSIONS
from gamelens.wire.dimensions import Dimension as Dimension
from gamelens.wire.filters import dimensions_in
from gamelens.wire.intervals import Granularity
from gamelens.wire.queries import MetricQuery

_HALF: Final = 0.5 + 1e-6  # what rounding to a whole number changes, and the last digits of a float
MONEY_DIGITS: Final = 6
"""Digits to which a sum of cents is rounded before it is rounded to whole ones: half a cent is then exactly that."""
TITLES: Final = {"game_id": "game", "studio_id": "studio", "country_code": "country"}
"""Column of names beside each column of ids or codes, for which `by` takes that name."""
Kinds = Literal["plain", "per game", "retention"]
Adds = Literal["everywhere", "over time and games", "over games", "never"]
Recipe = Literal["sum", "distinct", "money", "share", "revenue per", "its own"]
"""How a metric is computed: an atom summed, or its different values counted; money of events; one metric / another one;
revenue / players; or in a way that no other metric has."""


@suggests_names
class Quotient(msgspec.Struct, frozen=True):
    """A ratio of fields of the same row: *part* (and *plus*) / *whole*, times *worth*."""

    part: str
    whole: str
    worth: float = 1.0
    plus: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it is made of."""
        return (self.part, self.whole) if self.plus is None else (self.part, self.plus, self.whole)

    def numerator(self, sums: Mapping[str, Any]) -> Any:
        """Return the numerator, times *worth*, from the *sums* of the fields."""
        return self.worth * (sums[self.part] if self.plus is None else sums[self.part] + sums[self.plus])

    def value(self, sums: Mapping[str, Any], divide: Divide) -> Any:
        """Return the ratio of the *sums* of the fields, NaN where *whole* is 0."""
        return divide(self.numerator(sums), sums[self.whole])

    def fraction(self, sums: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return numerator and denominator from the *sums* of the fields."""
        return self.numerator(sums), sums[self.whole]

    @property
    def expression(self) -> Expression:
        """The ratio as an expression of its fields."""
        above: Expression = Variable(self.part)
        above = above if self.plus is None else Operation("+", above, Variable(self.plus))
        above = above if self.worth == 1 else Operation("*", Constant(self.worth), above)
        return Operation("/", above, Variable(self.whole))

    def unrounded(self, part: float, ratio: float, whole: float) -> float:
        """Return the *part* of a row as it was before the service rounded it to a whole number.

        It is *ratio* x *whole*, or *part* itself where the ratio has too few digits to tell.
        """
        exact = ratio * whole / self.worth
        return exact if abs(exact - part) <= _HALF else part


@suggests_names
class Field(msgspec.Struct, frozen=True):
    """One field of a metric's rows.

    Attributes:
        name: name on the wire.
        kind: `count` is an integer, `number` a float.
        unit: unit, for people.
        combines: rule by which rows are added up: a sum, a quotient or formula of other fields, or None if they cannot
            be.
        column: name of its column, for a part whose own name says too little.
    """

    name: str
    kind: Literal["count", "number"]
    unit: str
    combines: Literal["sum"] | Quotient | Formula | None = "sum"
    column: str = ""


@suggests_names
class Metric(msgspec.Struct, frozen=True):
    """One metric.

    Attributes:
        name: name on the wire.
        meaning: definition in a few words.
        recipe: how it is computed.
        made_of: names of what it is computed from: the atom (`sandbox.storage.atoms`) of a sum or a distinct count; of
            money, the atoms of its events and their amounts; of a share, the metrics part and whole; of revenue, the
            metric that counts the players.
        unit: unit of its own field, for people.
        kinds: forms of query it takes: plain, per game (one game or by game), or retention (Wire 2.6, Query kinds).
        takes_since_days_ago: whether a query may have `since_days_ago`.
        adds: what its values may be summed over: everywhere is buckets and dimensions (Wire 4.14, Adding up).
        fields: fields of its rows, without the dimensions; if it has a recipe, they follow from it.
        sorts_by: field that orders the rows of an answer; by default the one called as the metric.
        title: its name for people; empty is the name in words.
    """

    name: str
    meaning: str
    recipe: Recipe = "its own"
    made_of: tuple[str, ...] = ()
    unit: str = ""
    kinds: Kinds = "plain"
    takes_since_days_ago: bool = False
    adds: Adds = "everywhere"
    fields: tuple[Field, ...] = ()
    sorts_by: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        if not self.sorts_by:
            msgspec.structs.force_setattr(self, "sorts_by", self.name)

    @property
    def shown(self) -> tuple[str, ...]:
        """The fields that a frame has without `fields="all"`: its own, and the parts that this is recombined from."""
        made = next((field.combines for field in self.fields if field.name == self.sorts_by), None)
        parts = (
            made.names
            if isinstance(made, Quotient | Formula)
            else [field.name for field in self.fields if field.column]
        )
        return (self.sorts_by, *parts)

    @property
    def columns(self) -> dict[str, str]:
        """The column of each field in a frame; columns of the same name mean the same in all metrics."""
        return {field.name: self._column(field) for field in self.fields}

    def shown_columns(self, *, all_fields: bool = False) -> dict[str, str]:
        """Return the columns of a frame, its own first, each by the field that it holds."""
        columns = self.columns
        return {name: columns[name] for name in dict.fromkeys([*self.shown, *(columns if all_fields else ())])}

    def _column(self, field: Field) -> str:
        if field.name == self.sorts_by:
            return self.name
        return field.column or (field.name if field.name in self.shown else f"{self.name}_{field.name}")

    @property
    def rounded_money(self) -> tuple[tuple[str, Quotient], ...]:
        """Each ratio of money that rows have in whole cents: its field and how it is made.

        The service divides the money before it rounds it (Wire 4.13, Numbers), so sums are made of `unrounded` money.
        """
        cents = {field.name for field in self.fields if field.kind == "count" and field.unit == "US cents"}
        ratios = ((field.name, field.combines) for field in self.fields)
        return tuple((name, made) for name, made in ratios if isinstance(made, Quotient) and made.part in cents)


def _count(name: str, unit: str, column: str = "") -> Field:
    return Field(name, "count", unit, column=column)


def _number(name: str, unit: str, combines: Literal["sum"] | Quotient | Formula | None = "sum") -> Field:
    return Field(name, "number", unit, combines)


_MONEY: Final = (
    _count("event_count", "events"),
    _number("mean", "USD", Quotient("sum", "event_count")),
    _number("sum", "USD"),
    _number("sum_cents", "US cents"),
)


def _catalog(*rows: Metric) -> dict[str, Metric]:
    """Return the metrics by name, with what follows from their recipes."""
    counts = {row.name: _count(row.name, row.unit) for row in rows if row.recipe in ("sum", "distinct")}
    return {row.name: _completed(row, counts) for row in rows}


def _completed(row: Metric, counts: Mapping[str, Field]) -> Metric:
    """Return *row* with the fields of its recipe, their order and what they add up over."""
    match row.recipe, row.made_of:
        case "sum", _:
            return msgspec.structs.replace(row, fields=(counts[row.name],))
        case "distinct", _:
            return msgspec.structs.replace(row, fields=(counts[row.name],), adds="over games")
        case "money", _:
            return msgspec.structs.replace(row, fields=_MONEY, sorts_by="sum")
        case "share", (part, whole):
            fields = (_number(row.name, row.unit, Quotient(part, whole)), counts[part], counts[whole])
            by_name = tuple(sorted(fields, key=lambda field: field.name))
            return msgspec.structs.replace(row, fields=by_name, adds="over games")
        case "revenue per", (players,):
            ratio = _number(row.name, row.unit, Quotient("total_revenue", players, 0.01))
            fields = (ratio, counts[players], _count("total_revenue", "US cents", "total_revenue_cents"))
            return msgspec.structs.replace(row, fields=fields, adds="over games")
    return row


METRICS: Final = _catalog(
    Metric("ad_impressions_count", "ads shown", "sum", ("shown",), "ads", title="Ads shown"),
    Metric(
        "ad_impressions_per_session",
        "ads shown / sessions",
        "share",
        ("ad_impressions_count", "session_unique"),
        "ads per session",
    ),
    Metric(
        "arppu", "revenue / paying users", "revenue per", ("paying_users",), "USD per payer", title="Revenue per payer"
    ),
    Metric(
        "arpu", "revenue / active users", "revenue per", ("user_unique",), "USD per player", title="Revenue per player"
    ),
    Metric("conversion", "paying users / active users", "share", ("paying_users", "user_unique"), "share", "per game"),
    Metric(
        "conversion_ft",
        "converting users / active users",
        "share",
        ("converting_users", "user_unique"),
        "share",
        "per game",
    ),
    Metric("converting_users", "players whose first purchase falls in the bucket", "sum", ("converted",), "players"),
    Metric("event_count", "events of any category", "sum", ("events",), "events", title="Events"),
    Metric(
        "ilrd_id_unique", "distinct ad impressions", "distinct", ("impression",), "impressions", title="Ad impressions"
    ),
    Metric("ilrd_revenue", "ad impression revenue", "money", ("impressions", "earned"), title="Ad revenue"),
    Metric("installs_ratio", "new users / active users", "share", ("new_users", "user_unique"), "share", "per game"),
    Metric(
        "new_users", "players whose install falls in the bucket", "sum", ("installed",), "players", title="New players"
    ),
    Metric("paying_users", "distinct players with a purchase", "distinct", ("payer",), "players"),
    Metric(
        "retention_retro",
        "of the players installed N days before a day, the share active on it",
        kinds="retention",
        takes_since_days_ago=True,
        adds="never",
        fields=(_number("retention", "share", None),),
        sorts_by="retention",
    ),
    Metric(
        "returning_users",
        "distinct players active on a day after their install day",
        "distinct",
        ("returner",),
        "players",
        "per game",
        takes_since_days_ago=True,
    ),
    Metric("revenue", "purchases", "money", ("purchases", "paid"), title="Purchase revenue"),
    Metric(
        "session_length",
        "mean length of session_end events",
        adds="over games",
        fields=(
            _number("session_length", "seconds", None),
            _count("session_unique", "sessions that ended", "session_length_count"),
            _count("total_session_length", "seconds", "session_length_sum"),
        ),
    ),
    Metric("session_unique", "distinct sessions with an event", "distinct", ("session",), "sessions", title="Sessions"),
    Metric("user_unique", "distinct players with an event", "distinct", ("player",), "players", title="Active players"),
)
"""All metrics of the service, by name."""


@suggests_names
class Ingredient(msgspec.Struct, frozen=True):
    """One field of an alias, read from *field* of *metric*.

    Attributes:
        metric: the metric of the service.
        field: a field of its rows.
        every: the bucket that it is counted in, summed over the bucket of the query; None for the query's own.
        is_mean: whether it is the mean over those buckets instead of the sum. A mean of several is a float.
    """

    metric: str
    field: str
    every: Literal["day"] | None = None
    is_mean: bool = False


class Alias(Metric, frozen=True, kw_only=True):
    """A metric under the name that analysts use, computed from metrics of the service.

    Fields of the same name mean the same in all aliases, and no field of the service is called so.

    Attributes:
        ingredients: what each field is read from that is not a quotient.
        every: the only bucket it is counted in; None for any.
    """

    ingredients: Mapping[str, Ingredient]
    every: Granularity | None = None

    @property
    def needs(self) -> tuple[tuple[str, Literal["day"] | None], ...]:
        """The metrics of the service that it needs, each with its own bucket, if any."""
        return tuple(dict.fromkeys((ingredient.metric, ingredient.every) for ingredient in self.ingredients.values()))

    def _column(self, field: Field) -> str:
        return field.name


class CohortShare(Alias, frozen=True, kw_only=True):
    """The share of the players installed in a bucket who were active *age* days later, as `Client.retention` has it.

    Its ingredients are the players who came back and those who installed, null where the day has not come for one of
    them. A whole period (`every="all"`) counts the install days that are old enough.
    """

    age: int


def _cohort_share(age: int) -> CohortShare:
    """Return the alias for retention of one *age*."""
    name, returned, installs = f"d{age}_retention", f"d{age}_returned", f"d{age}_installs"
    return CohortShare(
        name=name,
        age=age,
        meaning=f"D{age} retention: of the players who installed in the bucket, the share active {age} days later"
        if age > 1
        else "D1 retention: of the players who installed in the bucket, the share active on the day after",
        fields=(
            _number(name, "share", Quotient(returned, installs)),
            _count(returned, "players"),
            _count(installs, "players"),
        ),
        adds="over time and games",
        ingredients={
            returned: Ingredient("retention_retro", "retention", "day"),
            installs: Ingredient("new_users", "new_users", "day"),
        },
    )


def _counted(name: str, metric: str, every: Granularity, meaning: str) -> Alias:
    """Return the alias of a count of players in buckets of *every*."""
    field = _count(name, "players")
    ingredient = {name: Ingredient(metric, metric)}
    return Alias(
        name=name,
        title=name.upper(),
        meaning=meaning,
        fields=(field,),
        adds="over games",
        ingredients=ingredient,
        every=every,
    )


def _daily(name: str, title: str, metric: str, meaning: str) -> Alias:
    """Return the alias of a count of players by day. Longer buckets have the mean of their days."""
    ingredient = {name: Ingredient(metric, metric, "day", is_mean=True)}
    return Alias(
        name=name,
        title=title,
        meaning=meaning,
        fields=(_count(name, "players"),),
        adds="over games",
        ingredients=ingredient,
    )


_AD_FIELDS: Final = (_number("ad_revenue", "USD"), _count("impressions", "impressions"))
_AD_INGREDIENTS: Final = {
    "ad_revenue": Ingredient("ilrd_revenue", "sum"),
    "impressions": Ingredient("ilrd_revenue", "event_count"),
}
OTHER_NAMES: Final = {
    "active_users": "user_unique",
    "ads_shown": "ad_impressions_count",
    "iap_revenue": "revenue",
    "in_app_revenue": "revenue",
    "installs": "new_users",
    "payers": "paying_users",
    "purchase_revenue": "revenue",
    "sessions": "session_unique",
}
"""What is suggested for names that others use. The nearest by letters may be another metric."""

ALIASES: Final[dict[str, Alias]] = {
    alias.name: alias
    for alias in (
        Alias(
            name="ad_revenue",
            meaning="ad impression revenue: ilrd_revenue",
            fields=_AD_FIELDS,
            ingredients=_AD_INGREDIENTS,
        ),
        Alias(
            name="arpdau",
            meaning="(purchases + ad revenue) / player-days, the sum of the daily active players",
            fields=(
                _number("arpdau", "USD per player per day", Quotient("iap_revenue", "player_days", plus="ad_revenue")),
                _number("iap_revenue", "USD"),
                _AD_FIELDS[0],
                _count("player_days", "active player-days"),
            ),
            adds="over time and games",
            ingredients={
                "iap_revenue": Ingredient("revenue", "sum"),
                "ad_revenue": _AD_INGREDIENTS["ad_revenue"],
                "player_days": Ingredient("user_unique", "user_unique", "day"),
            },
        ),
        _daily(
            "dap",
            "Daily active payers",
            "paying_users",
            "daily active payers: paying_users by day, for longer buckets the mean of their days",
        ),
        _daily(
            "dau",
            "DAU",
            "user_unique",
            "daily active users: user_unique by day, for longer buckets the mean of their days",
        ),
        Alias(
            name="ecpm",
            meaning="ad impression revenue / impressions, times 1,000",
            fields=(
                _number("ecpm", "USD per 1,000 impressions", Quotient("ad_revenue", "impressions", 1000)),
                *_AD_FIELDS,
            ),
            ingredients=_AD_INGREDIENTS,
        ),
        *map(_cohort_share, (1, 7, 30)),
        _counted("mau", "user_unique", "month", "monthly active users: user_unique by calendar month"),
        Alias(
            name="stickiness",
            meaning="DAU / MAU: the mean of the daily active players / the active players of the calendar month",
            fields=(
                _number("stickiness", "share", Quotient("mean_dau", "mau")),
                _number("mean_dau", "players"),
                _count("mau", "players"),
            ),
            adds="over games",
            ingredients={
                "mean_dau": Ingredient("user_unique", "user_unique", "day", is_mean=True),
                "mau": Ingredient("user_unique", "user_unique"),
            },
            every="month",
        ),
        _counted("wau", "user_unique", "week", "weekly active users: user_unique by ISO week"),
    )
}
"""Metrics that the library computes from metrics of the service, by name."""


def columns_for(metric: str, field: str) -> dict[str, str]:
    """Return the columns that hold *field* of the service's *metric*, each with what is queried for it.

    The column of the metric comes first, then columns of aliases: `ecpm` brings the number of impressions, as
    `impressions`.
    """
    known = METRICS[metric]
    main = {known.columns[field]: metric if field in known.shown else f'{metric} with fields="all"'}
    ingredient = Ingredient(metric, field)
    aliases = [alias for alias in ALIASES.values() if alias.every is None]
    brought = {
        name: alias.name for alias in aliases for name in alias.shown if alias.ingredients.get(name) == ingredient
    }
    return main | brought


class OwnMetric(Alias, frozen=True, kw_only=True):
    """An alias that a user has defined by a formula of metrics and aliases.

    Attributes:
        definition: the formula as it was typed, with the unit that it has.
    """

    definition: MetricFormula


@suggests_names
class Catalog(msgspec.Struct, frozen=True, dict=True):
    """The metrics of the service, the aliases, and own metrics: what one client can query.

    Attributes:
        formulas: the own metrics, each after those that its formula names.

    Raises:
        BadQuery: a name is taken or not valid, or a formula is not one of metrics that can be combined.
    """

    formulas: tuple[MetricFormula, ...] = ()

    def __post_init__(self) -> None:
        _ = self.own

    @classmethod
    def defined(cls, given: Mapping[str, Any], place: str = "") -> Catalog:
        """Return the catalog with own metrics as a user defines them: by name a formula, or a table.

        Args:
            given: the metrics. A table has `formula`, and where it cannot be derived `unit`; `title` is optional.
            place: where they are from, for errors: " in FILE".

        Raises:
            BadQuery: a definition has another form, or is refused by `Catalog`.
        """
        if not isinstance(given, Mapping):
            raise BadQuery(f"metrics{place}", given, 'must be a table: {"ads_per_payer": "ads_shown / paying_users"}')
        found: dict[str, MetricFormula] = {}
        for name, definition in given.items():
            found[name] = _definition(name, definition, place)
        return cls(_in_order(found, place))

    @classmethod
    @lru_cache(maxsize=256)
    def recorded(cls, formulas: tuple[MetricFormula, ...]) -> Catalog:
        """Return the catalog with the own metrics of a receipt.

        Those that this version cannot read are left out, since a receipt may be of another version, or damaged.
        """
        readable: tuple[MetricFormula, ...] = ()
        for formula in formulas:
            try:
                readable = cls((*readable, formula)).formulas
            except BadQuery:
                continue
        return cls(readable)

    @cached_property
    def own(self) -> dict[str, OwnMetric]:
        """The own metrics by name."""
        defined: dict[str, OwnMetric] = {}
        for formula in self.formulas:
            defined[formula.name] = _own_metric(formula, defined)
        return defined

    @cached_property
    def aliases(self) -> dict[str, Alias]:
        """The aliases and own metrics by name."""
        return {**ALIASES, **self.own}

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """All that can be queried, by name."""
        return {**METRICS, **self.aliases}

    def find(self, name: str) -> Metric | None:
        """Return the metric, alias or own metric called *name*, or None."""
        return self.metrics.get(name)

    def service_metrics(self, names: Iterable[str]) -> set[str]:
        """Return the metrics of the service that *names* need: those that aliases are made of, and the others."""
        known = {name: self.aliases.get(name) for name in names}
        needed = ([metric for metric, _ in alias.needs] if alias else [name] for name, alias in known.items())
        return {metric for found in needed for metric in found}

    def formulas_of(self, names: Iterable[str]) -> tuple[MetricFormula, ...]:
        """Return the own metrics among *names*, and those that their formulas name, each after those."""
        needed = {*names}
        for formula in reversed(self.formulas):
            if formula.name in needed:
                needed |= {*names_in(parse_formula(formula.formula))}
        return tuple(formula for formula in self.formulas if formula.name in needed)


_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_MOST_TEXT: Final = 60  # letters of a unit or a title
_MOST_SHOWN: Final = 80  # letters of a formula in an error
_COHORT_COLUMNS: Final = ("age", "retention", "returned", "installs")
_WEAKEST_FIRST: Final[tuple[Adds, ...]] = ("never", "over games", "over time and games", "everywhere")


def _definition(name: object, given: object, place: str) -> MetricFormula:
    """Return the definition of one own metric, whose form is checked.

    Raises:
        BadQuery: it is neither a text nor a table of texts.
    """
    field = f"metrics.{name}{place}"
    table = {"formula": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or "formula" not in table:
        raise BadQuery(field, given, 'must be a formula such as "revenue / user_unique", or a table with formula')
    for key, value in table.items():
        if key not in ("formula", "unit", "title"):
            raise BadQuery(f"{field}.{key}", value, "is not known", ["formula", "unit", "title"], name=str(key))
        if not isinstance(value, str):
            raise BadQuery(f"{field}.{key}", value, "must be a string")
    texts = {key: " ".join(value.split()) for key, value in table.items()}
    for key in ("unit", "title"):
        if len(text := texts.get(key, "")) > _MOST_TEXT or not text.isprintable():
            raise BadQuery(f"{field}.{key}", text, f"must have at most {_MOST_TEXT} letters")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise BadQuery(f"metrics{place}", name, "is no name: use letters, digits and _, 60 at most, a letter first")
    return MetricFormula(name=name, **texts)


def _in_order(given: Mapping[str, MetricFormula], place: str) -> tuple[MetricFormula, ...]:
    """Return the definitions, each after those that its formula names, with their units.

    Raises:
        BadQuery: one needs itself, or is refused.
    """
    defined: dict[str, OwnMetric] = {}

    def add(name: str, needing: tuple[str, ...]) -> None:
        """Add *name* after what it needs. *needing* are the metrics that need it."""
        field = f"metrics.{name}{place}"
        if name in needing:
            cycle = " -> ".join([*needing[needing.index(name) :], name])
            raise BadQuery(field, given[name].formula, f"needs itself ({cycle}): define one of them by other metrics")
        if name in defined:
            return
        try:
            needed = names_in(parse_formula(given[name].formula))
        except ValueError as error:
            raise BadQuery(field, shortened(given[name].formula, _MOST_SHOWN), str(error)) from None
        for other in needed:
            if other in given:
                add(other, (*needing, name))
        defined[name] = _own_metric(given[name], defined, place, [*given])

    for name in given:
        add(name, ())
    return tuple(metric.definition for metric in defined.values())


def _own_metric(
    given: MetricFormula, defined: Mapping[str, OwnMetric], place: str = "", others: Iterable[str] = ()
) -> OwnMetric:
    """Return the metric that *given* defines.

    Args:
        given: the definition.
        defined: the own metrics that its formula may name.
        place: where it is from, for errors.
        others: further names to suggest.

    Raises:
        BadQuery: as `Catalog` says.
    """
    name, field = given.name, f"metrics.{given.name}{place}"
    if taken := _taken(name):
        raise BadQuery(field, given.formula, f"needs another name: {taken}")
    try:
        typed = parse_formula(given.formula)
    except ValueError as error:
        raise BadQuery(field, shortened(given.formula, _MOST_SHOWN), str(error)) from None
    if not names_in(typed):
        raise BadQuery(field, given.formula, "names no metric: make it of one at least")
    parts: dict[str, tuple[Field, Ingredient]] = {}
    made: dict[str, Expression] = {}
    buckets: dict[str, Granularity] = {}
    for part in names_in(typed):
        known = defined.get(part) or ALIASES.get(part) or METRICS.get(part)
        if known is None:
            names = sorted({*METRICS, *ALIASES, *defined, *others} - {name})
            rule = f"names {part}, which is not a metric"
            raise BadQuery(field, given.formula, rule, names, name=part, meant=OTHER_NAMES.get(part))
        if (why := _not_combined(known)) is not None:
            raise BadQuery(field, given.formula, f"cannot be made of {part}: {why}")
        made[part], found = _parts_of(known)
        parts |= found
        if isinstance(known, Alias) and known.every is not None:
            buckets[part] = known.every
    if len({*buckets.values()}) > 1:
        counted = ", ".join(f"{part} by {bucket}" for part, bucket in buckets.items())
        raise BadQuery(field, given.formula, f"is made of metrics that are counted in different buckets ({counted})")
    expression = written_out(typed, made)
    if steps_in(expression) > MOST_STEPS:
        rule = f"has more than {MOST_STEPS} names, numbers and signs with its own metrics written out: shorten it"
        raise BadQuery(field, given.formula, rule)
    try:
        unit = given.unit or unit_of(expression, {part: column.unit for part, (column, _) in parts.items()})
    except ValueError as error:
        rule = f'{error}: state one, {{"formula": "{given.formula}", "unit": "..."}}'
        raise BadQuery(field, given.formula, rule) from None
    combined = Formula(expression)
    needed = [parts[part] for part in combined.names]
    adds = min((_adds_of(ingredient) for _, ingredient in needed), key=_WEAKEST_FIRST.index)
    per_game = any(METRICS[ingredient.metric].kinds == "per game" for _, ingredient in needed)
    return OwnMetric(
        name=name,
        meaning=given.formula,
        unit=unit,
        kinds="per game" if per_game else "plain",
        adds=adds,
        fields=(_number(name, unit, combined), *(column for column, _ in needed)),
        title=given.title,
        ingredients={column.name: ingredient for column, ingredient in needed},
        every=next(iter(buckets.values()), None),
        definition=msgspec.structs.replace(given, unit=unit),
    )


def _taken(name: str) -> str:
    """Return what *name* is already, or "" for a name that is free."""
    if name in METRICS or name in ALIASES:
        return f"{name} is a metric"
    if name in DIMENSIONS or name in TITLES.values() or name == "studio_id":
        return f"{name} is a dimension"
    holders = [metric.name for metric in (*METRICS.values(), *ALIASES.values()) if name in metric.columns.values()]
    if holders or name in ("timestamp", *_COHORT_COLUMNS):
        return f"{name} is a column of {holders[0] if holders else 'frames'}"
    return ""


def _not_combined(metric: Metric) -> str | None:
    """Return why no formula can be made of *metric*, or None."""
    if metric.kinds == "retention" or isinstance(metric, CohortShare):
        return "it is the retention of an age, which is read from other days than the rest; query it beside"
    if metric.recipe == "its own" and not isinstance(metric, Alias):
        return "it comes without its parts"
    return None


def _parts_of(metric: Metric) -> tuple[Expression, dict[str, tuple[Field, Ingredient]]]:
    """Return *metric* as an expression of columns that are summed, and each column with where it is read."""
    if isinstance(metric, Alias):
        main = next(field for field in metric.fields if field.name == metric.sorts_by)
        made = main.combines.expression if isinstance(main.combines, Quotient | Formula) else Variable(main.name)
        fields = {field.name: field for field in metric.fields}
        return made, {name: (fields[name], metric.ingredients[name]) for name in names_in(made)}
    match metric.recipe, metric.made_of:
        case "money", _:
            return Variable(metric.name), {metric.name: (_number(metric.name, "USD"), Ingredient(metric.name, "sum"))}
        case "share" | "revenue per", (*_, whole):
            part = metric.made_of[0] if metric.recipe == "share" else "revenue"
            above, columns = _parts_of(METRICS[part])
            below, more = _parts_of(METRICS[whole])
            return Operation("/", above, below), columns | more
    return Variable(metric.name), {metric.name: (metric.fields[0], Ingredient(metric.name, metric.name))}


def _adds_of(ingredient: Ingredient) -> Adds:
    """Return what the values of an ingredient may be summed over."""
    adds = METRICS[ingredient.metric].adds
    is_of_days = ingredient.every == "day" and not ingredient.is_mean
    return "over time and games" if is_of_days and adds == "over games" else adds


CATALOG: Final = Catalog()
"""The catalog without own metrics."""


def service_metrics(names: Iterable[str]) -> set[str]:
    """Return the metrics of the service that *names* need: those that aliases are made of, and the others."""
    return CATALOG.service_metrics(names)


def find_metric(name: str) -> Metric | None:
    """Return the metric or alias called *name*, or None."""
    return CATALOG.find(name)


def metric_named(name: str) -> Metric:
    """Return the metric called *name*.

    Raises:
        BadQuery: no metric has this name; the error names the nearest.
    """
    if name not in METRICS:
        raise BadQuery("metric", name, "is not a metric", sorted(METRICS))
    return METRICS[name]


def check_query(metric: Metric, query: MetricQuery) -> None:
    """Check that *metric* takes *query*, whose shape is valid (Wire 2.6, Query kinds).

    Raises:
        BadQuery: a dimension is unknown, the metric does not take this kind of query, or a field does not apply.
    """
    _check_kind(metric, query)
    named = [("query.dimension" if query.query is not None else "split_by", name) for name in query.dimensions]
    named += [("filter", name) for name in dimensions_in(query.filter)] if query.filter is not None else []
    for field, name in named:
        if name not in DIMENSIONS:
            raise BadQuery(field, name, "is not a dimension", DIMENSIONS)
        if metric.kinds == "retention" and DIMENSIONS[name].level in ("ad", "ilrd"):
            raise BadQuery(field, name, f"does not apply to {metric.name}, whose players have no such value")


def _check_kind(metric: Metric, query: MetricQuery) -> None:
    if metric.kinds == "plain":
        for field in ("game", "split_by"):
            if getattr(query, field) is not None:
                raise BadQuery(field, getattr(query, field), f"does not apply to {metric.name}: send a query instead")
    elif query.query is not None and query.game is None:
        use = "split_by" if metric.kinds == "retention" else "game beside it, or split_by in its place"
        raise BadQuery(
            "query",
            msgspec.to_builtins(query.query),
            f"is not enough for {metric.name}, which exists per game: send {use}",
        )
    if metric.kinds == "retention":
        _check_retention(metric, query)
    if query.since_days_ago is not None and not metric.takes_since_days_ago:
        raise BadQuery("since_days_ago", query.since_days_ago, f"does not apply to {metric.name}")


def _check_retention(metric: Metric, query: MetricQuery) -> None:
    if query.game is not None:
        raise BadQuery("game", query.game, f"does not apply to {metric.name}: send split_by")
    if query.since_days_ago is None:
        raise BadQuery("since_days_ago", msgspec.UNSET, f"is missing: {metric.name} needs it")
    if query.granularity != "day":
        raise BadQuery("granularity", query.granularity, f"must be day for {metric.name}", ["day"])
