"""The encodings that a text may be in which is no UTF-8, each with what it makes of the first words.

None is guessed: an encoding that reads wrong letters makes wrong names. They are named in the refusal, those first in
which the letters beyond ASCII are usual for one language: Turkish letters read as Windows-1250 make no Czech word.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

_SAMPLE: Final = 1 << 16
_MOST_NAMED: Final = 4
_MOST_WORDS: Final = 2_000
_LIKELY: Final = 0.9  # share of letters that are usual where an encoding is used
_CERTAIN: Final = 0.95  # the same of an encoding of several bytes, whose rules other texts break
_UNSURE: Final = 2.5  # of the logarithm of how likely: what is behind the best by less is named too
_STRANGE: Final = math.log(1e-4)  # of a letter that a language does not have, or a sign within a word
_SIGN: Final = math.log(0.05)
_SIGN_AT_WORD: Final = math.log(0.005)
_KANA: Final = r"\u3005\u3040-\u30ff"
_FIRST_LEVEL: Final = {  # bytes of the frequent characters; bytes of other encodings are often beyond them
    "cp932": ("shift_jis", (0x88, 0x98)),
    "euc_jp": ("euc_jp", (0xB0, 0xCF)),
    "gb18030": ("gb2312", (0xB0, 0xD7)),
    "big5": ("big5", (0xA4, 0xC6)),
}


class _Script(NamedTuple):
    """The letters beyond ASCII of languages that share encodings, of each the most frequent first."""

    encodings: Sequence[str]
    languages: Sequence[str]
    is_latin: bool = True


_SCRIPTS: Final = (
    _Script(
        ("cp1252", "mac_roman", "cp850"),
        (
            "üäößé",  # German
            "éèàêçôûùîïâœëü",  # French
            "óíáéñúüçº",  # Spanish
            "ãçáéíóõêâàúôº",  # Portuguese
            "àèùòìé",  # Italian
            "ëéïèüöá",  # Dutch
            "äåöé",  # Swedish, Finnish
            "øåæéöü",  # Danish, Norwegian
            "áðíéþöæóúý",  # Icelandic
            "àóèéíçòúïü",  # Catalan
        ),
    ),
    _Script(
        ("cp1250", "iso8859_2", "mac_latin2", "cp852"),
        (
            "łąęóżśćńź",  # Polish
            "íáéěýžščřůúťďňó",  # Czech
            "áíéýčžšúľôťóňďäĺŕ",  # Slovak
            "áéöóőíüúű",  # Hungarian
            "ăîâşţ",  # Romanian
            "čžšćđ",  # Croatian, Slovene
        ),
    ),
    _Script(("cp1254", "mac_turkish", "cp857"), ("ıüşğöçİâîû",)),
    _Script(
        ("cp1257", "iso8859_4"),
        ("ėšąįžųūęč", "āīēšūņļģķžč", "äõüöšž"),  # Lithuanian, Latvian, Estonian
    ),
    _Script(("cp1253", "iso8859_7", "mac_greek", "cp737"), ("αοιετσνηυρπκμλςωγδάίόχέθήφύβώξζψϊϋΐΰ",), is_latin=False),
    _Script(
        ("cp1251", "koi8_r", "koi8_u", "iso8859_5", "mac_cyrillic", "cp866"),
        (
            "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",  # Russian
            "оанивітеркслдмпуяьзбгйчхцюжїшщєфґ",  # Ukrainian
            "аиоетнрсвлкпдмзгъубчцйжщюхшфяь",  # Bulgarian
            "аоиеунстрјклвдмпзгбчцшжћђљњфхџ",  # Serbian
        ),
        is_latin=False,
    ),
    _Script(("cp1255", "iso8859_8"), ("יוהלאמרתבשנעדקחפגטסזצכםןץףך",), is_latin=False),
    _Script(("cp1256", "iso8859_6"), ("الينمورتبعدسهكفةقحجشأطصىخإضذزآثغئءظؤپچژگ",), is_latin=False),
    _Script(("cp874",), ("านรอกเงมยลวดทสตปะคไจพแหชใบโขผซธถภศษฟญณฐฝฉฎฏฆำๆ่้ัีิุู็์ึื",), is_latin=False),
)
_OF_ONE_LETTER: Final = -2.0  # more, for a word of one letter: what looks like one may be a sign
_OLD: Final = -2.0  # more, for encodings that only old systems write
_MARKS: Final = "€£¥©®°§«»–—…‘’“”„•·№™, \u00a0₪฿"
_EASTERN_SIGN: Final = re.compile(  # also arrows, circled numbers, shapes such as ▲, and ㈱
    f"[{_MARKS}×\u2190-\u21ff\u2460-\u24ff\u25a0-\u26ff\u3000-\u3004\u3006-\u303f\u3200-\u33ff"
    "\uff00-\uff0f\uff1a-\uff20\uffe0-\uffe6]"
)
_WITHIN_WORDS: Final = "’·-"
_THAI_MARKS: Final = re.compile(r"(?<![ก-ฮ่-๋ัิ-ู])[ัิ-ู่-๋]|[เ-ไ](?![ก-ฮ])")


def likely_encodings(content: bytes) -> list[tuple[str, str]]:
    """Return the likeliest encodings of *content*, each with the first words that need it; none for what is no text."""
    sample = content[:_SAMPLE]
    if len(content) > _SAMPLE:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    if b"\0" in sample:
        half = len(sample) // 2
        wide = [name for name, at in (("utf-16-le", 1), ("utf-16-be", 0)) if sample[at::2].count(0) > 0.5 * half]
        return [(name, _words(sample[: 2 * half].decode(name, "replace"))) for name in wide]
    eastern = {name: share for name in ("cp949", *_FIRST_LEVEL) if (share := _eastern_share(sample, name)) >= _LIKELY}
    if eastern.get("cp949", 0.0) >= _CERTAIN:  # syllables alone; in others half of the bytes are of rare characters
        eastern = {"cp949": eastern["cp949"]}
    names = [name for name, share in eastern.items() if share >= max(eastern.values()) - 0.02]
    is_eastern = max(eastern.values(), default=0.0) >= _CERTAIN
    scores = dict(_scores(sample, latin_alone=is_eastern))
    if not is_eastern or not names:
        best = max(scores.values(), default=0.0)
        near = sorted((name for name in scores if scores[name] >= best - _UNSURE), key=scores.__getitem__, reverse=True)
        names = [*near, *names]
    texts: dict[str, str] = {}
    for name in names:  # the first of several that read the same
        texts.setdefault(sample.decode(name), name)
    return [(name, _words(text)) for text, name in texts.items()][:_MOST_NAMED]


def _scores(sample: bytes, *, latin_alone: bool) -> Iterator[tuple[str, float]]:
    """Yield the encodings of one byte a letter that make sense, with the logarithm of how likely their letters are."""
    for script in _SCRIPTS:
        if latin_alone and not script.is_latin:
            continue
        for name in script.encodings:
            try:
                text = sample.decode(name)
            except UnicodeDecodeError:
                continue
            words = [*dict.fromkeys(word for word in re.split(r"[\s,;|\"]+", text) if not word.isascii())][:_MOST_WORDS]
            of_any = "".join(dict.fromkeys("".join(script.languages)))
            orders = [_zipf(letters) for letters in script.languages]
            orders.append(dict.fromkeys(of_any, -math.log(len(of_any))))  # names of several languages
            found = [_of_language(words, order, is_latin=script.is_latin) for order in orders]
            share, score = max(found, key=lambda of_language: of_language[1])
            if share >= _LIKELY:
                yield name, score if name == script.encodings[0] else score + _OLD


def _zipf(letters: str) -> dict[str, float]:
    """Return the logarithm of how likely each of *letters* is, where the second is half as frequent as the first."""
    whole = sum(1 / rank for rank in range(1, len(letters) + 1))
    return {letter: -math.log((place + 1) * whole) for place, letter in enumerate(letters)}


def _of_language(words: Sequence[str], order: Mapping[str, float], *, is_latin: bool) -> tuple[float, float]:
    """Return the share of the letters beyond ASCII that a language has, and the logarithm of how likely they are."""
    known = count = 0
    score = 0.0
    for word in words:
        is_thai = "ก" in order
        odd = {match.start() for match in _THAI_MARKS.finditer(word)} if is_thai else set()
        for place, letter in enumerate(word):
            if letter.isascii():
                continue
            before, behind = word[place - 1 : place], word[place + 1 : place + 2]
            if letter == "Ø" and place == 0 and not behind.islower():  # the sign of an average: Ø CPI
                score += _SIGN
                continue
            if not letter.isalpha() and unicodedata.category(letter) != "Mn":
                is_within = before.isalpha() and behind.isalpha() and letter not in _WITHIN_WORDS
                is_sign = letter in _MARKS and not is_within
                count += 0 if is_sign else 1
                is_free = letter in _WITHIN_WORDS or not (before.isalpha() or behind.isalpha())
                score += (_SIGN if is_free else _SIGN_AT_WORD) if is_sign else _STRANGE
                continue
            count += 1
            likely = order.get(letter if letter in order else letter.lower())
            is_camel = letter.isupper() and before.islower()
            is_mixed = not is_latin and any(other.isascii() and other.isalpha() for other in before + behind)
            if likely is None or is_camel or is_mixed or place in odd:
                score += _STRANGE
            else:
                known += 1
                score += likely + (_OF_ONE_LETTER if len(word) == 1 else 0)
    if not is_latin and words and 2 * sum(word[1:].isupper() for word in words if len(word) > 1) > len(words):
        return 0.0, -math.inf  # capitals alone: bytes of another script
    return (known / count if count else 1.0), score


def _eastern_share(sample: bytes, name: str) -> float:
    """Return the share of the letters beyond ASCII that are usual in the languages of an encoding of several bytes."""
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return 0.0
    letters = [letter for letter in text if not letter.isascii() and not _EASTERN_SIGN.match(letter)]
    words = [word for word in re.split(r"[\W_]+", text) if not word.isascii()]
    mostly_latin = [word for word in words if 2 * sum(map(str.isascii, re.sub(r"\d", "", word))) > len(word)]
    if not letters or 2 * len(mostly_latin) > len(words):  # an accent within a Latin word
        return 0.0
    if name == "cp949":
        return sum("\uac00" <= letter <= "\ud7a3" for letter in letters) / len(letters)
    return sum(map(_is_frequent, letters, [name] * len(letters))) / len(letters)


def _is_frequent(letter: str, name: str) -> bool:
    if name in ("cp932", "euc_jp") and re.match(f"[{_KANA}]", letter):
        return True
    codec, (first, last) = _FIRST_LEVEL[name]
    try:
        written = letter.encode(codec)
    except UnicodeEncodeError:
        return False
    return len(written) > 1 and first <= written[0] <= last


def _words(text: str) -> str:
    """Return the first three words that are not ASCII."""
    found = dict.fromkeys(word for word in re.split(r"[\s,;|\"]+", text) if not word.isascii())
    return " ".join([*found][:3])[:40]
