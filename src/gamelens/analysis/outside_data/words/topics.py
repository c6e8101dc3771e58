"""Patterns that find the words of one topic of the lexicon in a folded header or text."""

from __future__ import annotations

import re
from functools import cache

from gamelens.analysis.outside_data.words.header_words import any_phrase, folded_header
from gamelens.analysis.outside_data.words.total_words import LEXICON


@cache
def topic_pattern(topic: str) -> re.Pattern[str]:
    """Return a pattern that finds one of the words of *topic*, such as `no_money`, as `any_phrase` does."""
    return any_phrase(folded_header(word) or word for word in LEXICON[topic]["words"])
