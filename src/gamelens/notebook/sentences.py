"""Conclusions in words, computed from the data, with escaped names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from pandas import DataFrame

from gamelens._text import counted, escape_markdown
from gamelens.analysis.claims import of as claims_of
from gamelens.analysis.claims.claims_frame import doubtful
from gamelens.analysis.claims.findings import findings_of
from gamelens.analysis.claims.templates import judged_of, sentences_of, words
from gamelens.analysis.claims.templates import spoken as claims_spoken
from gamelens.errors import extra_named
from gamelens.notebook.escaping import escape_dollars

if TYPE_CHECKING:
    from IPython.display import Markdown

MOST_SENTENCES: Final = 3
MOST_WORDS: Final = 25
"""Of a first screen, and of each of its sentences."""
_LIST_FROM: Final = 3
_FEWEST_WORDS: Final = 4
_SENTENCE_END: Final = re.compile(r"\. ")
_CLAUSE_ENDS: Final = (re.compile(r"(?<!&#\d\d)(?<!&#\d\d\d); "), re.compile(": "), re.compile(r" \("))
"""The semicolon of an entity, such as &#62;, is a letter. Numbers in brackets are left out where nothing else helps."""
_UNCLEAR: Final = ("no clear difference",)

Result = DataFrame | str
"""A result of an analysis, rows of its claims, or a sentence in plain text."""


class _Sentence(NamedTuple):
    """A sentence in Markdown, the heading of its section or None, and whether it says that nothing is clear."""

    text: str
    heading: str | None
    is_unclear: bool


def spoken(result: DataFrame, kinds: Sequence[str] = ()) -> Markdown:
    """Return what *result* says of *kinds*, by default of all, as a paragraph or a list, and how it was judged.

    Raises:
        BadQuery: it is not a result of an analysis, or there is no such kind of claim.
    """
    wanted = findings_of(result, kinds)
    lines = claims_spoken(wanted, escape=escape_markdown) or ["This result has no claims."]
    judged = " ".join(dict.fromkeys(filter(None, judged_of(wanted))))
    text = " ".join(lines) if len(lines) < _LIST_FROM else "\n".join(f"- {line}" for line in lines)
    return _markdown(escape_dollars(f"{text}\n\n*{judged}*" if judged else text))


def conclusions(*results: Result | Mapping[str, Result | Sequence[Result]]) -> Markdown:
    """Return what several results say as one list in Markdown, each sentence once.

    All comparisons of the list are one family: those that could be chance among so many come last, under a line that
    says so.

    For the first screen of a page, give results by the headings of their sections:

        from gamelens.notebook import conclusions
        earned = ads.earnings(lens.query("ecpm", by="ilrd_network_name", over="last 7 days"), by="ilrd_network_name")
        conclusions({"By network": earned, "As we know": ["A holiday was on Monday."]})

    Then three sentences are shown, with a link to their section: those that say something clear, then one of each
    section in which nothing is clear. They have at most 25 words: a longer one ends with its first clauses. The others
    fold, and so do results without a heading.

    Args:
        results: results of analyses, rows of their claims (`result.lens.claims()`), or sentences in plain text; or
            these by heading.

    Raises:
        BadQuery: a frame is neither of these.
    """
    headed = [*_by_heading(results)]
    found = [_sentences_of(result, heading) for heading, result in headed]
    doubts = doubtful([claims for claims, _, _ in found if claims is not None])
    written = (texts for claims, texts, _ in found if claims is not None)
    unsure = {text for text, is_doubt in zip(chain(*written), chain(*doubts), strict=True) if is_doubt}
    sentences = {sentence.text: sentence for _, _, several in reversed(found) for sentence in reversed(several)}
    ordered = [*dict.fromkeys(sentence.text for _, _, several in found for sentence in several)]
    is_first_screen = any(heading is not None for heading, _ in headed)
    shown = _first(sentences, ordered, unsure) if is_first_screen else []
    rest = [sentences[text] for text in ordered if sentences[text] not in shown]
    sure, chance = ([one for one in rest if (one.text in unsure) == is_unsure] for is_unsure in (False, True))
    text = _list_of(sentence.text for sentence in sure)
    if chance:
        text += f"\n\n{words()['common']['chance']}\n\n" + _list_of(sentence.text for sentence in chance)
    if is_first_screen:
        first = _list_of(f"{_in_few_words(one.text)}{_link(one.heading)}" for one in shown)
        text = f"{first}\n\n{_folded(text, rest)}" if rest else first
    return _markdown(escape_dollars(text))


def _by_heading(
    results: Sequence[Result | Mapping[str, Result | Sequence[Result]]],
) -> Iterator[tuple[str | None, Result]]:
    """Yield each result with its heading, None where it was given without one."""
    for given in results:
        if not isinstance(given, Mapping):
            yield None, given
            continue
        for heading, several in given.items():
            for result in [several] if isinstance(several, DataFrame | str) else several:
                yield heading, result


def _sentences_of(result: Result, heading: str | None) -> tuple[DataFrame | None, list[str], list[_Sentence]]:
    """Return the claims of *result*, their sentences, and the sentences to read.

    A reader sees the last: the sentence of each claim, or of each clear one and a line on the others.
    """
    if isinstance(result, str):
        return None, [], [_Sentence(escape_markdown(result), heading, is_unclear=False)]
    if "how_judged" in result:
        claims, written = result, [*map(escape_markdown, result["text"])]
        lines = written
    else:
        findings = findings_of(result)
        claims, written = claims_of(result), sentences_of(findings, escape=escape_markdown)
        lines = claims_spoken(findings, escape=escape_markdown)
    clear = {text for text, direction in zip(written, claims["direction"], strict=True) if direction not in _UNCLEAR}
    return claims, written, [_Sentence(line, heading, is_unclear=line not in clear) for line in lines]


def _first(sentences: Mapping[str, _Sentence], ordered: Sequence[str], unsure: set[str]) -> list[_Sentence]:
    """Return the sentences of a first screen: clear ones, then the first of each section in which nothing is clear.

    Where these are too few, there are also the first unclear ones of the other sections. None of them could be chance,
    and each has a short form.
    """
    short = [sentences[text] for text in ordered if text not in unsure and _in_few_words(text)]
    headed = [sentence for sentence in short if sentence.heading is not None]
    unclear = {sentence.heading: sentence for sentence in reversed(headed) if sentence.is_unclear}
    clear = {sentence.heading for sentence in headed if not sentence.is_unclear}
    kept = [one for one in headed if not one.is_unclear or unclear[one.heading] is one]
    kept.sort(key=lambda sentence: sentence.is_unclear)
    chosen = sorted(kept, key=lambda sentence: sentence.is_unclear and sentence.heading in clear)[:MOST_SENTENCES]
    return [sentence for sentence in kept if sentence in chosen]


def _in_few_words(text: str) -> str:
    """Return *text*, or where it has more than 25 words what it begins with: sentences, else a clause; else empty."""
    if len(text.split()) <= MOST_WORDS:
        return text
    sentences = [text[: end.start()] for end in _SENTENCE_END.finditer(text)][::-1]  # as many as fit
    clauses = (text[: end.start()] for ends in _CLAUSE_ENDS for end in ends.finditer(text))
    fitting = (begin for begin in chain(sentences, clauses) if _FEWEST_WORDS <= len(begin.split()) <= MOST_WORDS)
    if not (begin := next(fitting, "")):
        return ""
    still_open = _open_brackets(begin) - _open_brackets(text)
    return f"{begin}{')' * still_open}."


def _open_brackets(text: str) -> int:
    return text.count("(") - text.count(")")


def _link(heading: str | None) -> str:
    """Return a link to the section with *heading*, as JupyterLab names its place."""
    return f" [{escape_markdown(heading)}](#{heading.replace(' ', '-')})" if heading else ""


def _folded(text: str, sentences: Sequence[_Sentence]) -> str:
    """Return a list of *sentences* that opens with a click, below a line that counts them."""
    unclear = sum(sentence.is_unclear for sentence in sentences)
    about = "" if not unclear else " on" if unclear == len(sentences) else f", {unclear} on"
    summary = counted(len(sentences), "more sentence") + (f"{about} what is usual or unclear" if about else "")
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _list_of(lines: Iterator[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _markdown(text: str) -> Markdown:
    """Return *text* as a notebook shows it."""
    with extra_named("a sentence in a notebook"):
        from IPython.display import Markdown
    return Markdown(text)  # type: ignore[no-untyped-call]
