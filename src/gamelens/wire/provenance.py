"""The origin of the numbers of a frame: real service, sandbox, replay, or several mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from gamelens._text import one_line

ProvenanceKind = Literal["real", "sandbox", "replay", "mixed", "unknown"]
T = TypeVar("T")


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of the numbers of a frame.

    Attributes:
        kind: the real service, a sandbox, a replay of recorded answers, several of these mixed, or unknown.
        url: the address of the service, or the name of the folder of a replay; it never holds a key or a token.
        scenario: the scenario that a sandbox was populated with.
        sources: the service that was recorded, for a replay that knows it; the origins of the parts, for a mix.
    """

    kind: ProvenanceKind = "unknown"
    url: str | None = None
    scenario: str | None = None
    sources: tuple[Provenance, ...] = ()

    @property
    def is_simulated(self) -> bool:
        """Whether the numbers, or some of them, count the invented players of a sandbox."""
        return self.kind == "sandbox" or self.scenario is not None or any(it.is_simulated for it in self.sources)

    @property
    def badge(self) -> str:
        """The warning beside simulated numbers: "demo data", "partly demo data", or "" for others."""
        if not self.is_simulated:
            return ""
        is_whole = self.kind != "mixed" or all(it.is_simulated for it in self.sources)
        return "demo data" if is_whole else "partly demo data"

    @property
    def identity(self) -> tuple[str, str | None]:
        """The value that two frames of one origin share.

        A sandbox is recognised by its scenario, because its address is another after each start.
        """
        return self.kind, (self.scenario or self.url) if self.kind == "sandbox" else self.url

    @property
    def parts(self) -> tuple[Provenance, ...]:
        """The origins of the parts of a mix; of any other the origin itself."""
        return self.sources if self.kind == "mixed" and self.sources else (self,)

    @property
    def text(self) -> str:
        """The origin in a few words on one line, such as `sandbox, scenario demo`. Empty if it is unknown."""
        scenario = f", scenario {one_line(self.scenario)}" if self.scenario else ""
        match self.kind:
            case "sandbox":
                return f"sandbox{scenario}"
            case "replay":
                recorded = "".join(f", {it.text}" for it in self.sources) or scenario
                return f"replay of {one_line(self.url or 'recorded answers')}{recorded}"
            case "real":
                return one_line(urlsplit(self.url or "").netloc) or "real service"
            case "mixed":
                return " and ".join(it.text or "an unknown source" for it in self.sources) or "several sources"
        return ""


def merge_provenance(origins: Sequence[Provenance]) -> Provenance:
    """Return the origin of numbers computed from those of all *origins*: "mixed" where they differ."""
    parts = {part.identity: part for origin in origins for part in origin.parts}
    if len(parts) > 1:
        return Provenance(kind="mixed", sources=tuple(parts.values()))
    return Provenance(
        kind=origins[0].kind,
        url=_shared([origin.url for origin in origins]),
        scenario=_shared([origin.scenario for origin in origins]),
        sources=_shared([origin.sources for origin in origins]) or (),
    )


def mixture_warnings(provenance: Provenance) -> list[str]:
    """Return a warning for numbers of several origins, else nothing."""
    if provenance.kind != "mixed":
        return []
    of = f" ({provenance.badge})" if provenance.badge else ""
    return [f"numbers of different sources{of}: {provenance.text}. Compare frames of one source"]


def _shared(values: Sequence[T]) -> T | None:
    return values[0] if len({*values}) == 1 else None
