"""Join keys: which column of an outside table means which column of the frame, and whose name is whose.

The frame's column decides the type: times match times, text matches text (1001 is "1001", and 007 stays "007"), whole
numbers match whole numbers. Names of networks, publishers, formats, platforms, countries, games and campaigns match in
any spelling. Null is a key like any other, but a cost without a publisher never meets the players without one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_float_dtype, is_integer_dtype, is_numeric_dtype

from gamelens.analysis.ads.canonical_names import NameKind, bare_name, canonical_name, says_nothing
from gamelens.analysis.outside_data.outside_table import OutsideTable
from gamelens.analysis.outside_data.roles import CHANNELS, MEASURES, Role
from gamelens.analysis.outside_data.row_periods import step_of_days
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.errors import BadQuery

On = str | Sequence[str] | Mapping[str, str]

PUBLISHER: Final = "install_publisher"
NOBODY: Final = "\0nobody"
"""The key of a row whose publisher is not known, which no row of a frame has."""

_KEYS: Final[dict[str, tuple[Role, NameKind | None]]] = {  # the role that means a column of the frame, and its names
    **{
        "country_code": ("country", "country"),
        "platform": ("platform", "platform"),
        PUBLISHER: ("network", "publisher"),
    },
    **{"game": ("app", None), "campaign": ("campaign", None)},
    **dict.fromkeys(("network", "ilrd_network_name", "ad_sdk_name"), ("network", "network")),
    **dict.fromkeys(("format", "ilrd_adunit_format", "ad_type"), ("format", "format")),
}
_CODE: Final = re.compile(r"(?i)[a-z]{2}")
_CODE_OF_THREE: Final = re.compile(r"(?i)[a-z]{3}")
_FEWEST_CODES: Final = 3
_MOST_MERGED: Final = 6  # names that a note has
_GENERAL_WORDS: Final = frozenset({"ads", "ad", "int", "network", "media", "marketing", "mobile", "the"})
_ORGANIC_WORDS: Final = (
    r"organi[ck]\w*(?: (?:installs?|users?|traffic))?|orgánic\w*|orgânic\w*|органик\w*|自然|自然量|オーガニック|오가닉"
    r"|non-?paid"
)
_NOT_ATTRIBUTED: Final = r"(?:un|not )attributed"
_ORGANIC: Final = re.compile(  # also with what else it is called: organic (unattributed)
    rf"(?i)(?:{_NOT_ATTRIBUTED}\s*[(/|,]?\s*)?[(\[]?(?:{_ORGANIC_WORDS})[)\]]?"
    rf"(?:\s*[(/|,]?\s*{_NOT_ATTRIBUTED}[)\]]?)?"
)


@dataclass(frozen=True, eq=False)
class MatchedNames:
    """The key of each row of an outside table, its names that the frame does not have, and texts that are no names."""

    keys: Series[Any]
    unknown: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()


def pairs_of(on: On | None, frame: DataFrame, table: OutsideTable) -> dict[str, str]:
    """Return the column of the external table for each column of the frame in *on*; without it, by their roles.

    Raises:
        BadQuery: there is no pair, or a column is missing, named twice or not a key, or roles leave a choice.
    """
    if on is None:
        return _pairs_by_role(frame, table)
    listed = [on] if isinstance(on, str) else on
    pairs = dict(listed) if isinstance(listed, Mapping) else {name: name for name in listed}
    if not pairs:
        raise BadQuery("on", on, "names no column to join on", [str(name) for name in frame.columns])
    for left, right in pairs.items():
        if left not in frame:
            raise BadQuery("on", left, "is not a column of the frame", [str(name) for name in frame.columns])
        if right != table.periods.column or not is_datetime64_any_dtype(frame[left]):  # days may stand in a title
            table.column(right, "on")
        if is_float_dtype(frame[left]):
            raise BadQuery("on", left, "is a measured number, not a key: join on timestamp or a dimension")
    if len(set(pairs.values())) < len(pairs):
        raise BadQuery("on", [*pairs.values()], f"names a column of {table.source} twice")
    known = {column.name for column in table.columns}
    has_days = any(is_datetime64_any_dtype(frame[left]) for left in pairs)
    has_days |= "timestamp" not in frame or table.periods.column in pairs.values()
    if not has_days and table.period is not None:
        names = DataFrame({right: table.column(right).values.astype("object") for right in pairs.values()})
        is_sure = table.periods.evidence is not None and table.periods.evidence.where != "cells"
        if is_sure or names.duplicated().any():  # days are compared too, whatever names are given for the rest
            pairs = {"timestamp": table.periods.column} | pairs
    of_apps = [column.name for column in table.of_role("platform") if column.name not in table.grid.columns]
    is_app_compared = any(table.column(right).role == "app" for right in pairs.values() if right in known)
    if of_apps and is_app_compared and "platform" in frame and "platform" not in pairs:
        pairs |= {"platform": of_apps[0]}  # which is part of the name
    return pairs


def _pairs_by_role(frame: DataFrame, table: OutsideTable) -> dict[str, str]:
    """Return the pairs of columns that mean the same by their roles.

    Raises:
        BadQuery: several columns have the role, or none.
    """
    pairs: dict[str, str] = {}
    names = [str(name) for name in frame.columns]
    if "timestamp" in names and table.periods.length is not None:
        pairs["timestamp"] = table.periods.column
    elif "timestamp" in names and table.periods.problem is not None:
        raise table.periods.problem
    taken: set[Role] = set()
    for left in sorted(names, key=lambda name: [*_KEYS].index(name) if name in _KEYS else len(_KEYS)):
        role = _KEYS.get(left, (None, None))[0]
        if role in taken and left != PUBLISHER:
            continue
        found = _columns_for(left, role, frame, table) if role else []
        if not found and not is_numeric_dtype(frame[left]) and left not in pairs:
            found = [
                column.name
                for column in table.columns
                if column.name == left and column.role not in ("amount", "count")
            ]
        if len(found) > 1 and _name_the_same(found, left, table):
            found = sorted(found, key=lambda name: (name != left, _mean_length(table, name)))[:1]
        if len(found) > 1:
            todo = " or ".join(f'on={{"{left}": "{name}"}}' for name in found[:2])
            raise BadQuery("on", UNSET, f"must say which column of {table.source} is {left}: {todo}")
        if found and found[0] not in pairs.values():
            pairs[left] = found[0]
            taken |= {role} if role else set()
    if not pairs:
        keys = [name for name in names if name in _KEYS]
        keys += [
            name for name in names if not is_numeric_dtype(frame[name]) and not is_datetime64_any_dtype(frame[name])
        ]
        steps = [f'name a pair with on={{"{keys[0]}": "..."}}'] if keys else []
        if "timestamp" in names:
            steps.append(step_of_days(table.grid) or 'say the days of all rows, such as days="2026-10"')
            steps.append('name a column of days with roles={"...": "day"}')
        steps += ['who is paid in every row with network="..."'] if PUBLISHER in frame else []
        steps = steps or [f'name a pair with on={{"{names[0]}": "..."}}']
        rule = "has no column that means one of the frame: " + ", or ".join(steps)
        raise BadQuery("other", table.source, rule, [column.name for column in table.columns])
    return pairs


def _columns_for(left: str, role: Role, frame: DataFrame, table: OutsideTable) -> list[str]:
    """Return the columns of a table that have the *role* of a column of the frame.

    Campaigns called like publishers are these, where no column has networks.
    """
    made = [column.name for column in table.of_role(role) if column.name not in table.grid.columns]
    found = [column.name for column in table.of_role(role) if column.name not in made]
    if left == PUBLISHER and not found:
        known = _Names(frame[left], _KEYS[left][1])
        for column in table.of_role("campaign"):
            texts = [str(text) for text in column.values.dropna().unique()]
            is_known = [known.find(text) is not None for text in texts]
            if any(is_known) and all(
                is_known[at] or canonical_name(text, "publisher") for at, text in enumerate(texts)
            ):
                return [column.name]
    return found or made


def _name_the_same(columns: Sequence[str], left: str, table: OutsideTable) -> bool:
    """Return whether *columns* name the same in every row, in whatever spelling: Germany beside DE."""
    kind = _KEYS[left][1] if left in _KEYS else None
    meant: list[Series[Any]] = []
    for name in columns:
        texts, codes = _texts(table, name)
        names = [(canonical_name(text, kind) if kind else None) or _folded(text) for text in texts]
        meant.append(Series(np.array([*names, ""], dtype=object)[codes]))
    return all(bool((meant[0] == other).all()) for other in meant[1:])


def _mean_length(table: OutsideTable, name: str) -> float:
    texts, _ = _texts(table, name)
    return float(np.mean([len(text) for text in texts])) if texts else 0.0


def left_key(column: Series[Any]) -> Series[Any]:
    """Return a column of the frame as a key: datetime64[us, UTC], Int64 or str."""
    if is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True).astype("datetime64[us, UTC]")
    if is_integer_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype("Int64")
    return column.astype("object").map(_as_text, na_action="ignore").astype("str")


def right_key(table: OutsideTable, name: str, left: Series[Any], field: str, *, fold: bool = True) -> MatchedNames:
    """Return the keys of an outside column in the type of *left*, a key of the frame's column *field* that is no time.

    Raises:
        BadQuery: it is not an exact name or, if *left* has whole numbers, anything but these, or the frame has a name
            in two spellings, or a country has two letters where all others have three.
    """
    column = table.column(name, "on")
    if column.problem is not None and column.role not in MEASURES:  # its blank cells may be names
        raise column.problem
    if is_integer_dtype(left):
        if not is_numeric_dtype(column.values) or not _is_whole(column.values):
            example = column.values.dropna().iloc[0] if column.values.notna().any() else None
            raise BadQuery(name, example, "must be whole numbers, as in the frame")
        return MatchedNames(column.values.astype("float64").astype("Int64"))
    texts, codes = _texts(table, name)
    is_name = fold and field in _KEYS
    known = _Names(left, _KEYS[field][1]) if is_name else None
    targets: list[str | None] = []
    unknown: list[str] = []
    nameless: list[str] = []
    channels = _channels_of_creators(table, texts) if field == PUBLISHER else frozenset()
    has_three_letters = known is not None and field == "country_code" and _have_three_letters(texts)
    for text in texts:
        target = _named(text, table.names)
        if target is not UNSET:  # the analyst says it
            targets.append((target and (known.find(target) if known else None)) or target)
        elif known is not None and text not in known.exact and says_nothing(text, _KEYS[field][1]):
            targets.append(NOBODY if field == PUBLISHER else None)
            nameless.append(text)
        elif has_three_letters and _CODE.fullmatch(text.strip()):
            if text.strip().casefold() != "na":
                step = f"names={{{text!r}: {canonical_name(text, 'country')!r}}} says what it means"
                raise BadQuery(name, text, f"is a code of two letters where those of other rows have three: {step}")
            targets.append(None)
            nameless.append(text)
        elif known is None or text in channels or (found := known.find(text)) is None:
            code = canonical_name(text, "country") if known and _KEYS[field][1] == "country" else None
            if field == PUBLISHER and _ORGANIC.fullmatch(text.strip()):
                targets.append(None)
            elif field == PUBLISHER and _says_nobody(text):
                targets.append(NOBODY)
            else:
                targets.append(code or text)
                unknown += [text] if known and not code else []
        else:
            targets.append(found)
    targets.append(NOBODY if field == PUBLISHER else None)
    keys = Series(np.array(targets, dtype=object)[codes], dtype="object")
    return MatchedNames(keys.where(keys.notna(), None).astype("str"), tuple(unknown), tuple(nameless))


def _channels_of_creators(table: OutsideTable, texts: Sequence[str]) -> frozenset[str]:
    """Return which *texts* are sites where the creators of a table post, and no networks that show ads."""
    for column in table.of_role("text", "identifier", "campaign", "network", "app"):
        names = [str(name) for name in column.values.dropna().unique()]
        handles = sum(name.startswith("@") for name in names)
        if topic_pattern("creator").search(folded_header(column.name)) or 0 < len(names) <= 2 * handles:
            return frozenset(text for text in texts if folded_header(text) in CHANNELS)
    return frozenset()


def merged_names(
    table: OutsideTable, pairs: Mapping[str, str], keys: Mapping[str, Series[Any]], group: Series[Any]
) -> list[str]:
    """Return a note on different names of a column of *table* that became one name in one of the groups of its rows.

    Spellings of one name, and what the argument `names` says, are not remarked on.
    """
    notes = []
    for name, column in pairs.items():
        if name not in _KEYS or is_datetime64_any_dtype(keys[name]):
            continue
        texts = table.column(column).values.astype("object")
        rows = DataFrame({"group": group, "text": texts, "name": keys[name]})
        rows = rows[(group >= 0) & texts.notna() & rows["name"].notna() & (rows["name"] != NOBODY)]
        rows = rows[~rows["text"].map(lambda text: _named(str(text), table.names) is not UNSET).astype(bool)]
        rows["spelling"] = rows["text"].map(lambda text: _folded(str(text)))
        rows = rows.drop_duplicates(["group", "spelling"])
        several = rows[rows.duplicated("group", keep=False)]
        for target, found in several.groupby("name", sort=False)["text"]:
            listed = [*dict.fromkeys(map(str, found))]
            more = ", ..." if len(listed) > _MOST_MERGED else ""
            notes.append(f"{', '.join(listed[:_MOST_MERGED])}{more} of {column} are added up as {target}")
    return notes


def _have_three_letters(texts: Sequence[str]) -> bool:
    """Return whether countries are codes of three letters, DEU and JPN, so that NA is no value and not Namibia."""
    codes = [text for text in texts if _CODE_OF_THREE.fullmatch(text.strip())]
    countries = [text for text in codes if canonical_name(text, "country") is not None]
    return len(countries) >= _FEWEST_CODES and 2 * len(countries) > len(texts)


def unknown_names(
    table: OutsideTable, column: str, field: str, unknown: Sequence[str], left: Iterable[str]
) -> BadQuery:
    """Return the exception for names that the frame does not have, with the mapping to type."""
    known = [str(name) for name in left]
    text = unknown[0]
    bare = {_without_general_words(name): name for name in reversed(known)}
    similar = get_close_matches(_without_general_words(bare_name(text)), [*bare], n=1, cutoff=0.75)
    meant = bare[similar[0]] if similar else "..."
    example = f'names={{"{text}": "{meant}"}}' if meant != "..." else f'names={{"{text}": ...}}'
    rule = f"has {text!r}, and none of its names is in {field} of the frame ({', '.join(known[:5])}): {example}"
    return BadQuery(column, UNSET, rule)


def _without_general_words(name: str) -> str:
    """Return a name in small letters without the words that many names share: two names are not near by these."""
    words = name.casefold().replace("_", " ").split()
    return " ".join([word for word in words if word not in _GENERAL_WORDS] or words)


class _Names:
    """The names in a column of the frame, found in any spelling."""

    def __init__(self, column: Series[Any], kind: NameKind | None) -> None:
        self.exact = {str(text) for text in column.dropna().unique()}
        self._kind = kind
        self._by_form: dict[str, set[str]] = defaultdict(set)
        for name in sorted(self.exact):
            for form in self._forms(name):
                self._by_form[form].add(name)

    def find(self, text: str) -> str | None:
        """Return the name of the frame that *text* means, None if there is none.

        Raises:
            BadQuery: two spellings of the frame mean it.
        """
        if text in self.exact:
            return text
        for form in self._forms(text):
            found = self._by_form.get(form, set())
            if len(found) > 1:
                rule = f"may be {' or '.join(repr(name) for name in sorted(found))}, which the frame has both"
                step = "make its names one first, as ads.with_canonical_names(frame) does for networks"
                raise BadQuery("other", text, f"{rule}: {step}")
            if found:
                return next(iter(found))
        return None

    def _forms(self, text: str) -> list[str]:
        """Return what two spellings of one name have in common, the surest first."""
        canonical = canonical_name(text, self._kind) if self._kind else None
        forms = [f"={canonical}"] if canonical else []
        if self._kind in ("country", "platform", "format"):
            return [*forms, _folded(text)]
        bare = re.sub(r"(?i)\s*\b(?:ads?|network)$", "", bare_name(text)) if self._kind else bare_name(text)
        return [*forms, *dict.fromkeys(filter(None, (_folded(text), f"~{_folded(bare)}" if _folded(bare) else "")))]


def _named(text: str, names: Mapping[str, str | None]) -> Any:
    """Return what the argument *names* calls *text*, UNSET if it does not say."""
    if text in names:
        return names[text]
    folded = {_folded(spelling): name for spelling, name in names.items()}
    return folded.get(_folded(text), UNSET)


def _says_nobody(text: str) -> bool:
    words = [word for word in re.split(r"\s*[/|,;]\s*", text) if word]  # null / unknown
    return bool(words) and all(says_nothing(word, "publisher") for word in words)


def _folded(text: str) -> str:
    """Return *text* without case, blanks and punctuation."""
    return re.sub(r"[\W_]+", "", text.casefold())


def _texts(table: OutsideTable, name: str) -> tuple[list[str], Any]:
    """Return the distinct texts of a column and the place of each row's text, the last for none.

    Raises:
        BadQuery: numbers are not exact names: they have decimals, or digits beyond 2**53.
    """
    column = table.column(name, "on")
    if name not in table.grid.columns:
        codes, texts = pd.factorize(column.values.astype("object"))
        return [str(text) for text in texts], codes
    cells = table.grid.cells.column(name)
    if str(cells.type) == "double":
        values = cells.to_numpy()
        wrong = ~np.isnan(values) & ((values % 1 != 0) | (np.abs(values) >= 2.0**53))
        if wrong.any():
            raise BadQuery(name, float(values[wrong][0]), "is a number where a name is needed: read the column as text")
    distinct, places = table.grid.texts(name)
    return distinct.to_pylist(), places


def _is_whole(values: Series[Any]) -> bool:
    known = values.dropna().astype("float64")
    return bool((known % 1 == 0).all())


def _as_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
