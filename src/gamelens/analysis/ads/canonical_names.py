"""Canonical names of networks, ad formats, publishers, platforms and countries, which everybody spells their own way.

The tables are `canonical_names.toml` and, for countries, `country_names.tsv.xz`, which `data/make_names.py` makes from
Unicode's CLDR. Impressions name their network in `ilrd_network_name`, ad events in `ad_sdk_name`; both become
`network`, and both columns of formats become `format`, so that frames of either join on them.
"""

from __future__ import annotations

import lzma
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, returns
from gamelens.errors import BadQuery

OwnNames = Mapping[str, str | None]
NameKind = Literal["network", "format", "publisher", "platform", "country"]

KINDS: Final[tuple[NameKind, ...]] = get_args(NameKind)
"""Kinds of names that have canonical ones."""
RAW_COLUMNS: Final[dict[str, NameKind]] = {
    "ilrd_network_name": "network",
    "ad_sdk_name": "network",
    "ilrd_adunit_format": "format",
    "ad_type": "format",
}
"""Columns that hold names as SDKs write them, and the column of their canonical names."""
UNKNOWN_REASON: Final = "network_unknown"
"""Column that says why a network is null."""
UNDISCLOSED: Final = "undisclosed"
NOT_REPORTED: Final = "not reported"

_TABLE: Final = Path(__file__).with_suffix(".toml")
_COUNTRIES: Final = Path(__file__).with_name("country_names.tsv.xz")
_CLASS: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+){2,}", re.ASCII)
_ADAPTER_PREFIX: Final = re.compile(r"(?:GADMediationAdapter|GADMAdapter|GADM?|AL|IS)(?=[A-Z])")
_BRACKETS: Final = re.compile(r"\s*[(\[（【][^()\[\]（）【】]*[)\]）】]\s*$")
_OTHERWISE: Final = re.compile(
    r"(?i)[(\[（【]\s*(?:non[- ]?paid|organi[ck]\w*|自然|自然量|オーガニック|오가닉|органик\w*)\s*[)\]）】]"
)
"""Brackets that say that the players of a name came by themselves: these are no part of a spelling."""
_CODE: Final = re.compile(r"(?:.*[(\[]\s*)?([A-Za-z]{2})(?:\s*[)\]]|\s+-\s.*)?|.*\s-\s+([A-Z]{2})")
_INITIALS: Final = re.compile(r"[^\W\d_]\W+[^\W\d_]\W*")
_OF_INITIALS: Final = {"us": "US", "uk": "GB", "ru": "GB", "nz": "NZ"}
"""Countries by the initials of their names in several languages: Royaume-Uni, Reino Unido, Regno Unito."""
_OF_CHINA: Final = re.compile(r"中[国國](.+)|(.+), China")
_TWO_PLACES: Final = re.compile(
    r"\s*(?P<first>[^()\[\]（）【】]*[^\s()\[\]（）【】])\s*[(\[（【](?P<inner>[^()\[\]（）【】]+)[)\]）】]\s*"
    r"|\s*(?P<before>.{4,}?)\s*(?:,|，|\s[-–—]\s)\s*(?P<behind>.{4,})|\s*(?P<code>[A-Z]{2,3})\s+[-–—]\s+(?P<name>.{4,})"
)
"""Two names: one in brackets, behind a comma or behind a dash. Codes with a comma between them are a list."""
_TERRITORIES: Final = {
    "CN": "HK MO TW",
    "US": "AS GU MP PR UM VI",
    "FR": "BL GF GP MF MQ NC PF PM RE TF WF YT",
    "GB": "AI BM FK GG GI GS IM IO JE KY MS PN SH TC VG",
    "NL": "AW BQ CW SX",
    "DK": "FO GL",
    "NO": "BV SJ",
    "FI": "AX",
    "AU": "CC CX HM NF",
    "NZ": "CK NU TK",
}
"""Places with a code of their own that lists also write within another, whoever is right about that."""
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts without spaces: Thai, Lao, Burmese, Khmer, kana and Chinese characters."""
_MOST_WORDS: Final = 4
"""Words of the name of a country in a title.

Choice: a rule of wording, as many as United States of America has.
"""
_PUNCTUATION: Final = re.compile(r"[\s\-–—―−_.…·•*?#/\\|()\[\]<>\"']*")
_INTEGRATION: Final = re.compile(r"(?:[_\s-]+(?:int|sdk|bidding|s2s))+$", re.IGNORECASE)
_ADAPTER_SUFFIX: Final = re.compile(r"(?:RTB|Custom|Event|Mediation)*(?:Adapter|Network|Bidding|SDK)$", re.IGNORECASE)


@requires(frame=ANY)
@returns(KEYS, "network network_unknown format")
def with_canonical_names(
    frame: DataFrame, *, networks: OwnNames | None = None, formats: OwnNames | None = None
) -> DataFrame:
    """Return the frame with canonical names of networks and formats beside the raw ones.

        income = lens.query("ecpm", by=["ilrd_network_name", "ilrd_adunit_format"], over="yesterday")
        ads.with_canonical_names(income, networks={"unityads": "Unity"})

    A name that the table does not list stays as it is: `unlisted_names` has them. A name that says nothing is null.

    Args:
        frame: a frame by ilrd_network_name, ad_sdk_name, ilrd_adunit_format or ad_type, or by several of them.
        networks: your own names by the spellings of the data, which win over the table. None means no name.
        formats: the same for formats.

    It has the columns of *frame* as well, network and network_unknown if it has networks, format if it has formats.

    Raises:
        BadQuery: it has neither networks nor formats.
    """
    sources = {
        kind: [name for name, column_kind in RAW_COLUMNS.items() if column_kind == kind and name in frame]
        for kind in KINDS
    }
    if not any(sources.values()):
        raise BadQuery("frame", [*map(str, frame.columns)], "has no networks and no formats: query by", RAW_COLUMNS)
    columns: dict[str, Series[Any]] = {}
    own_names: dict[NameKind, OwnNames | None] = {"network": networks, "format": formats}
    for kind, given in own_names.items():
        if sources[kind]:
            raw = frame[sources[kind][0]].astype("object")
            for name in sources[kind][1:]:  # a row is of one category of events, so at most one of them is filled
                raw = raw.where(raw.notna(), frame[name].astype("object"))
            found = {text: _lookup(text, kind, given or {}) for text in raw.dropna().unique()}
            columns[kind] = raw.map({text: name for text, (name, _) in found.items()}).astype("category")
            if kind == "network":
                reasons = raw.map({text: reason for text, (_, reason) in found.items()}).where(
                    raw.notna(), NOT_REPORTED
                )
                columns[UNKNOWN_REASON] = reasons.astype("category")
    return frame.assign(**columns)


def canonical_values(column: Series[Any], kind: NameKind | None = None) -> Series[Any]:
    """Return the names of a column in their canonical spelling (category), names that no table lists as they are.

        spend = gl.read_table("ad_spend.csv").frame
        ads.canonical_values(spend["Geo"], "country")

    Countries become two letters, from two or three letters or a name in any language. A name that says nothing becomes
    null.

    Args:
        column: texts of any frame.
        kind: what they name: "network", "format", "publisher", "platform" or "country". By default what the name of the
            column says, and a column of another name is returned as it is.

    Raises:
        BadQuery: there is no such kind.
    """
    kind = RAW_COLUMNS.get(str(column.name)) if kind is None else kind
    if kind is None:
        return column
    if kind not in KINDS:
        raise BadQuery("kind", kind, "is not a kind of names", KINDS)
    raw = column.astype("object")
    return raw.map({text: _lookup(text, kind, {})[0] for text in raw.dropna().unique()}).astype("category")


def canonical_name(text: str, kind: NameKind) -> str | None:
    """Return the canonical name of *text*, None if no table lists it or it says nothing."""
    found = _listed(text, kind)
    return found[0] if found else None


def says_nothing(text: str, kind: NameKind | None = None) -> bool:
    """Return whether *text* stands for no name: -, N/A, #N/A, (not set), unknown. NA is Namibia among countries."""
    folded = re.sub(r"[\W_]+", "", text.casefold())
    if not folded:
        return _PUNCTUATION.fullmatch(text) is not None  # a flag is a name
    if kind in (None, "country") and len(folded) == 2 and text.strip().isalpha():
        return False
    return _table()["network"].get(folded, ("", ""))[1] == NOT_REPORTED


def countries_in(text: str) -> dict[str, str]:
    """Return the countries that a title or the name of a file names: two letters by the words of *text*.

    Names are words of any language, or part of a text in a script without spaces. Two letters count in capitals alone.
    """
    names, found = _countries(), dict[str, str]()
    words = re.findall(r"[^\W_]+", text)
    place = 0
    while place < len(words):
        for length in range(min(_MOST_WORDS, len(words) - place), 0, -1):
            phrase = " ".join(words[place : place + length])
            is_code = len(phrase) <= 3 and phrase.isascii()
            if (code := names.get(folded_country(phrase))) and (not is_code or phrase.isupper()):
                found[phrase] = code
                place += length - 1
                break
        place += 1
    folded = folded_country(text) if _UNSPACED.search(text) else ""
    for name in sorted((name for name in names if _UNSPACED.match(name)), key=len, reverse=True) if folded else ():
        if name in folded:
            found[name], folded = names[name], folded.replace(name, " ")
    return found


def named_for(frame: DataFrame, by: str | Sequence[str] | None) -> DataFrame:
    """Return the frame with the canonical columns that *by* names."""
    wanted = {by} if isinstance(by, str) else set(by or ())
    missing = (wanted & {"network", "format", UNKNOWN_REASON}) - set(frame.columns)
    return with_canonical_names(frame) if missing and set(RAW_COLUMNS) & set(frame.columns) else frame


@requires(frame=ANY)
def unlisted_names(frame: DataFrame) -> list[str]:
    """Return the names of networks and formats that the table does not list, sorted.

    For example:

        income = lens.query("ecpm", by="ilrd_network_name", over="last 28 complete days")
        ads.unlisted_names(income)
    """
    return sorted(
        {
            str(text)
            for column, kind in RAW_COLUMNS.items()
            if column in frame
            for text in frame[column].dropna().unique()
            if _listed(str(text), kind) is None
        }
    )


def _lookup(text: str, kind: str, given: OwnNames) -> tuple[str | None, str | None]:
    """Return the canonical name of *text*, or None and the reason."""
    folded_own = {_fold(spelling): name for spelling, name in given.items()}
    if text in given or _fold(text) in folded_own:
        name = given[text] if text in given else folded_own[_fold(text)]
        return name, None if name is not None else NOT_REPORTED
    return _listed(str(text), kind) or (str(text), None)


def _listed(text: str, kind: str) -> tuple[str | None, str | None] | None:
    """Return the name or the reason that the table has for *text*, None if it has neither."""
    if kind == "country":
        if says_nothing(text, "country"):
            return None, NOT_REPORTED
        code = _country(text)
        return (code, None) if code else None
    listed = _table()[kind]
    bare = bare_name(text)
    parts: tuple[str, ...] = (text, bare)
    if kind != "platform":  # Google Ads is no Google Play
        parts = (text, *_adapter_parts(text), bare, *_adapter_parts(bare))
    return next((listed[_fold(part)] for part in parts if _fold(part) in listed), None)


def bare_name(text: str) -> str:
    """Return the name of a network or app without what vendors append: brackets, `_int`, `SDK`."""
    if _OTHERWISE.search(text):
        return text
    return _INTEGRATION.sub("", _BRACKETS.sub("", text).strip()) or text


def _country(text: str) -> str | None:
    """Return the two letters of a country by its code or its name in any language, None for another text."""
    names = _countries()
    if _INITIALS.fullmatch(text.strip()):  # R.-U. is not the code of Russia
        letters = re.sub(r"\W", "", text).casefold()
        return _OF_INITIALS.get(letters)
    found = (
        names.get(folded_country(text)) or _narrower_place(text) or names.get(folded_country(text.partition("(")[0]))
    )
    found = found or (names.get(folded_country(part[1] or part[2])) if (part := _OF_CHINA.fullmatch(text)) else None)
    if found:
        return found
    match = _CODE.fullmatch(text.strip())
    return names.get((match[1] or match[2]).casefold()) if match else None


def _narrower_place(text: str) -> str | None:
    """Return the narrower of two places in *text*: China (Hong Kong) is Hong Kong."""
    match = _TWO_PLACES.fullmatch(text)
    codes = [_countries().get(folded_country(part), "") for part in match.groups() if part] if match else []
    pairs = zip(codes, reversed(codes), strict=True)
    return next((inner for outer, inner in pairs if inner in _TERRITORIES.get(outer, "").split() and inner), None)


def _adapter_parts(text: str) -> list[str]:
    """Return what the name of an adapter's class says about its network, the surest first."""
    path = text.split(".") if _CLASS.fullmatch(text) else [text]
    name = _ADAPTER_SUFFIX.sub("", path[-1])
    bare = _ADAPTER_PREFIX.sub("", name)
    after = path.index("mediation") + 1 if "mediation" in path[:-2] else None
    return [name, bare, re.sub(r"Ads$", "", bare), *([path[after]] if after else [])]


def _fold(text: str) -> str:
    """Return *text* without case, spaces and punctuation, unless it is nothing else."""
    return re.sub(r"[\W_]+", "", str(text).casefold()) or text.strip()


@cache
def _countries() -> dict[str, str]:
    """Return the two letters of each country by its folded names and codes."""
    lines = lzma.decompress(_COUNTRIES.read_bytes()).decode().splitlines()
    return {name: code for code, *names in (line.split("\t") for line in lines) for name in names}


@cache
def _table() -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """Return the name and the reason of each folded spelling, for networks and formats."""
    tables = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    unknown = {_fold(text): (None, reason) for reason, texts in tables.pop("unknown").items() for text in texts}
    return {
        kind: unknown | {_fold(text): (name, None) for name, texts in names.items() for text in (name, *texts)}
        for kind, names in tables.items()
    }


def folded_country(text: str) -> str:
    """Return the name of a country without case, accents, spaces and punctuation."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in parts if part.isalnum() and not unicodedata.combining(part)).removeprefix("the")
