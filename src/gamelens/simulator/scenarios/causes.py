"""The causes that a scenario plants, as values that code can compare with what an analysis says.

They are read from the timeline, so a cause and its effect cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gamelens.errors import suggests_names
from gamelens.simulator.scenarios.timeline import (
    BadBuild,
    Campaign,
    GameSilence,
    HardLevel,
    Holiday,
    Incident,
    LostSessions,
    NetworkOutage,
    PriceChange,
    ScenarioExperiment,
)


@suggests_names
class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One planted cause: what happened, where, when, and how large it is.

    Attributes:
        kind: "campaign", "experiment", "holiday", or the kind of an incident.
        game: title of the game, "" for all games.
        where: values by dimension, as the metrics service names them, with `level` beside them. Several entries may
            make one cause, such as a price that falls in two countries.
        day: first day, counted from the first day of the scenario.
        days: number of days, None if it lasts to the end.
        measure: what it changes.
        size: the change, in the unit that *measure* says.
    """

    kind: str
    game: str
    where: Mapping[str, tuple[str, ...]]
    day: int
    days: int | None
    measure: str
    size: float

    def lasts(self, day: int) -> bool:
        """Return whether *day* is one of its days."""
        return day >= self.day and (self.days is None or day < self.day + self.days)


STEP: Final = "step on the logit scale of "
FACTOR: Final = "factor of "


def causes_of(
    campaigns: Iterable[Campaign],
    experiments: Iterable[ScenarioExperiment],
    incidents: Iterable[Incident],
    holidays: Iterable[Holiday],
    *,
    builds: Mapping[tuple[str, str], int],
) -> Iterator[Cause]:
    """Yield the causes of a timeline. *builds* is the day of each build, by title of its game and name.

    A variant has a cause for each of its effects. Equal incidents in several countries are one cause.
    """
    for campaign in campaigns:
        where = {
            "install_publisher": (campaign.publisher,),
            "country_code": campaign.countries,
            "platform": campaign.platforms,
        }
        effects = [(FACTOR + "installs", campaign.size, 0.0), (STEP + "ever paying", campaign.spend, 0.0)]
        effects += [(FACTOR + "retention", campaign.stay, 1.0), (FACTOR + "the cost of an install", campaign.cost, 1.0)]
        yield from _causes("campaign", campaign.game, where, campaign.day, campaign.days, effects)
    for experiment in experiments:
        for variant in experiment.variants:
            where = {"ab_id": (experiment.id,), "ab_variant_id": (variant.id,)}
            effects = [(STEP + "playing on a day", variant.play, 0.0), (STEP + "dropping out", variant.drop_out, 0.0)]
            effects += [(STEP + "ever paying", variant.spend, 0.0), (FACTOR + "prices", variant.price, 1.0)]
            yield from _causes("experiment", experiment.game, where, experiment.day, experiment.days, effects)
    merged: dict[tuple[object, ...], Cause] = {}
    for incident in incidents:
        cause = _cause_of(incident, builds)
        countries = cause.where.get("country_code", ())
        rest = {name: values for name, values in cause.where.items() if name != "country_code"}
        key = (cause.kind, cause.game, *sorted(rest.items()), bool(countries), cause.day, cause.days, cause.size)
        if (earlier := merged.get(key)) is not None and countries:
            countries = (*earlier.where["country_code"], *countries)
        where = rest | ({"country_code": countries} if countries else {})
        merged[key] = msgspec.structs.replace(cause, where=where)
    yield from merged.values()
    for holiday in holidays:
        where = {"country_code": holiday.countries}
        effects = [(STEP + "playing on a day", holiday.play, 0.0)]
        yield from _causes("holiday", "", where, holiday.day, 1, effects)


def _causes(
    kind: str,
    game: str,
    where: Mapping[str, tuple[str, ...]],
    day: int,
    days: int | None,
    effects: Iterable[tuple[str, float, float]],
) -> Iterator[Cause]:
    """Yield a cause for each of *effects*, a measure with its size and the size that changes nothing."""
    named = {name: values for name, values in where.items() if values}
    for measure, size, neutral in effects:
        if size != neutral:
            yield Cause(kind=kind, game=game, where=named, day=day, days=days, measure=measure, size=size)


def _cause_of(incident: Incident, builds: Mapping[tuple[str, str], int]) -> Cause:
    where: dict[str, str | None]
    days: int | None
    match incident:
        case NetworkOutage():
            where = {"ilrd_network_name": incident.network, "platform": incident.platform}
            day, days, measure, size = incident.day, incident.days, FACTOR + "the fill rate", 0.0
        case PriceChange():
            where = {"ilrd_network_name": incident.network, "country_code": incident.country}
            day, days, measure, size = incident.day, incident.days, FACTOR + "eCPM", incident.factor
        case BadBuild():
            where = {"build": incident.build, "country_code": incident.country, "platform": incident.platform}
            day, days = builds[incident.game, incident.build], None
            measure, size = FACTOR + "retention", incident.stay
        case GameSilence():
            where, day, days, measure, size = {}, incident.day, incident.days, FACTOR + "events", 0.0
        case LostSessions():
            where, day, days = {"platform": incident.platform}, incident.day, incident.days
            measure, size = FACTOR + "sessions", 1 - incident.share
        case HardLevel():
            where, day, days = {"level": str(incident.level)}, incident.day, incident.days
            measure, size = FACTOR + "completed rounds", incident.complete
    return Cause(
        kind=str(incident.__struct_config__.tag),
        game=incident.game,
        where={name: (value,) for name, value in where.items() if value is not None},
        day=day,
        days=days,
        measure=measure,
        size=size,
    )
