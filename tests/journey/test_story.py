"""What the nine pages call clear of the demo, beside the causes that its scenario plants: all named, none invented.

The cells of each notebook run here, on a sandbox whose lake has the demo's players. Every result that is left has its
claims (`gamelens.analysis.claims`), so no word of a page is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import nbformat
import pytest
from pandas import DataFrame

from gamelens.analysis.claims.claims_frame import doubtful, of
from gamelens.analysis.claims.findings import Finding, findings_of
from gamelens.analysis.tidy_frames.results import ResultRecord
from gamelens.errors import BadQuery
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import populate_lake, today
from gamelens.local.sandbox_process import running_sandbox
from gamelens.simulator import load_scenario
from gamelens.simulator.scenarios.causes import Cause
from support.executed_notebooks import NOTEBOOKS

pytestmark = [pytest.mark.slow, pytest.mark.wide]

SEEDS: Final = (1, 2, 3, 4, 5)
DESCRIBES: Final = frozenset(
    {
        "ad revenue by",
        "advice on ecpm",
        "ARPDAU by",
        "concentration",
        "ecpm",
        "fill rate",
        "install cost by",
        "installs",
        "lifetime value",
        "payback ahead",
        "payback",
        "reconciliation",
        "retention gap",
        "store rank",
    }
)
"""Kinds that rank what a scenario is all the time, such as prices of networks, and say nothing of what happened."""
SUMS: Final = frozenset({"ad revenue change", "health", "retention drift"})
"""Kinds about all games and days together, in which every cause has its part."""

_RETENTION: Final = {"D1 retention", "D3 retention", "D7 retention", "Day 1 retention", "Day 7 retention"}
_PLAYED: Final = {"Active players", "Sessions", "Ads shown", "Ad revenue", "Session length"}
_PAID: Final = {"Purchases", "Conversion", "conversion", "Revenue per player", "revenue per player", "Paying players"}
MOVES: Final[Mapping[str, Mapping[str, set[str]]]] = {
    "price_change": {"lower": {"price", "Ad revenue", "eCPM"}},
    "bad_build": {"lower": _RETENTION | _PLAYED | _PAID},
    "hard_level": {"lower": _RETENTION | _PLAYED | _PAID, "higher": {"players lost"}},
    "lost_sessions": {"lower": _RETENTION | _PLAYED | _PAID | {"New players", "Events"}},
    "campaign": {"lower": _RETENTION | _PAID | {"payback"}, "higher": _PLAYED | {"New players", "special days"}},
    "experiment": {"higher": _PAID, "lower": _PAID},
    "holiday": {"higher": _RETENTION | _PLAYED | _PAID | {"special days"}},
    # The games begin on day 0 without players, who then gather.
    "launch": {"higher": _RETENTION | _PLAYED | _PAID | {"New players"}},
}
"""What each kind of cause moves, and which way."""
LAUNCH: Final = Cause(kind="launch", game="", where={}, day=0, days=None, measure="players", size=1.0)
_DIMENSIONS: Final = {
    "network": "ilrd_network_name",
    "publisher": "install_publisher",
    "first_build": "build",
}
_NOTICED_DAYS: Final = 4
"""Days by which a page may date a change sooner or later than it happened: most series are judged by weeks."""


class Told(NamedTuple):
    """A clear claim of a page."""

    page: str
    finding: Finding
    text: str


class Story(NamedTuple):
    """The causes of a played demo, its first day, and what its pages call clear and all that they say."""

    causes: tuple[Cause, ...]
    begins: datetime
    clear: list[Told]
    said: list[Told]

    def named(self, page: str, kind: str, **subject: str) -> list[Told]:
        """Return the clear claims of a page with this kind and this subject, among others."""
        return [
            told
            for told in self.clear
            if told.page.startswith(page)
            and told.finding.kind == kind
            and subject.items() <= dict(told.finding.subject).items()
        ]


@pytest.fixture(scope="module", params=SEEDS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Play the demo with a seed into a lake, and run the cells of the notebooks on it."""
    scenario, state = load_scenario("demo", seed=request.param), tmp_path_factory.mktemp("demo")
    record = populate_lake(state, scenario)
    (state / "played.json").write_bytes(msgspec.json.encode(record))
    begins = datetime.fromisoformat(f"{today() - timedelta(days=scenario.days)}T00:00+00:00")
    clear, said = list[Told](), list[Told]()
    with pytest.MonkeyPatch.context() as environment, running_sandbox(state) as ready, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a demo sandbox, which its pages say anyway
        environment.setenv("GAMELENS_STATE_DIR", str(state))
        for name, value in environment_of(ready).items():
            environment.setenv(name, value)
        for path in sorted(NOTEBOOKS.glob("0*.ipynb")):
            results = _results_of(path, {"state": str(state)} if path.stem.startswith("06") else {})
            frames = [of(result) for result in results]
            for result, frame, is_doubtful in zip(results, frames, doubtful(frames), strict=True):
                for finding, text, doubt in zip(findings_of(result), frame["text"], is_doubtful, strict=True):
                    told = Told(path.stem, finding, str(text))
                    said.append(told)
                    if finding.is_clear and not doubt:
                        clear.append(told)
    return Story((*scenario.causes, LAUNCH), begins, clear, said)


def _results_of(path: Path, parameters: Mapping[str, str]) -> list[DataFrame]:
    """Run the cells of a notebook and return the results that have claims, without parts of results."""
    names: dict[str, Any] = {"display": lambda *_, **__: None}
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):  # type: ignore[no-untyped-call]
        if cell.cell_type == "code" and "widgets." not in cell.source:
            exec(compile(cell.source, f"{path.name}[{number}]", "exec"), names)
            names |= {name: value for name, value in parameters.items() if name in names}
    values = [*names.values()]
    values += [getattr(value, name, None) for value in names.values() for name in ("moved", "levels", "causes")]
    found: dict[int, DataFrame] = {}
    for value in values:
        if isinstance(value, DataFrame) and ResultRecord.of(value.attrs) is not None:
            try:
                findings_of(value)
            except BadQuery:  # a part of a result, or a result without claims
                continue
            found[id(value)] = value
    return [*found.values()]


def is_behind(cause: Cause, told: Told, begins: datetime) -> bool:
    """Return whether *cause* moves what a claim is about: its measure and direction, where it is, and when."""
    finding = told.finding
    numbers = dict(finding.numbers)
    about = str(numbers.get("about", ""))
    measures = {finding.kind, str(numbers.get("metric", "")), str(numbers.get("measure", ""))}
    measures |= {part.strip() for part in about.partition(":")[2].split(",")}
    if not measures & MOVES[cause.kind].get(finding.direction, set()):
        return False
    subject = {_DIMENSIONS.get(name, name): value for name, value in finding.subject.items()}
    where = dict(cause.where) | ({"game": (cause.game,)} if cause.game else {})
    if any(subject[name] not in where[name] for name in subject.keys() & where.keys()):
        return False
    since, until = (next((numbers[name] for name in keys if numbers.get(name) is not None), None) for keys in _WHEN)
    if until is None:
        return True
    first, last = ((day - begins).days for day in (since if since is not None else until, until))
    starts, ends = cause.day - _NOTICED_DAYS, (10**6 if cause.days is None else cause.day + cause.days + _NOTICED_DAYS)
    return bool(starts <= last and first <= ends)


_WHEN: Final = (("since", "since_about", "first_day"), ("day", "last_day"))


def test_nothing_clear_is_invented(story: Story) -> None:
    """Each clear claim of the nine pages has a cause, or only describes what is so all the time."""
    judged = [told for told in story.clear if told.finding.kind not in DESCRIBES | SUMS]
    invented = [told for told in judged if not any(is_behind(cause, told, story.begins) for cause in story.causes)]
    assert len(judged) > 10
    assert not [f"{told.page}: {told.text}" for told in invented]


def test_each_cause_is_named_on_its_page(story: Story) -> None:
    """Eight causes, each by the page and the claim that should find it; most are on other pages as well."""
    named = {
        "lower price in the US": story.named("01", "price", network="Mintegral", country_code="US"),
        "lower price in Japan": story.named("01", "price", network="Mintegral", country_code="JP"),
        "bad build": story.named("02", "difference", first_build="1.10.1", platform="android"),
        "broken SDK": story.named("03", "segments", game="Tile Harbor", platform="android"),
        "players who do not pay": story.named("04", "payback", install_publisher="Liftoff"),
        "holiday": story.named("04", "special days"),
        "price that wins": story.named("05", "next step", ab_variant_id="lower_price"),
        "level": story.named("06", "players lost", name="Complete:world01:level004"),
    }
    assert [name for name, claims in named.items() if not claims] == []
    assert all("Lantern Day" in told.text for told in named["holiday"])


def test_the_price_without_an_answer_gets_none(story: Story) -> None:
    """Nothing clear is said of its conversion, and its next step is not to decide."""
    steps = [
        told.finding.case
        for told in story.said
        if told.finding.kind == "next step" and told.finding.subject.get("ab_id") == "gem_price"
    ]
    assert steps
    assert "decide" not in steps
