"""The encodings that a text may be in which is no UTF-8, each with what it makes of the first words.

None is guessed: an encoding that reads wrong letters makes wrong names. They are named in the refusal.
"""

from __future__ import annotations

import re
from typing import Final

_SAMPLE: Final = 1 << 16
_MOST_NAMED: Final = 4
_LIKELY: Final = 0.9  # share of letters that are usual where an encoding is used
_KANA: Final = r"\u3005\u3040-\u30ff"
_FIRST_LEVEL: Final = {  # bytes of the frequent characters; bytes of other encodings are often beyond them
    "cp932": ("shift_jis", (0x88, 0x98)),
    "euc_jp": ("euc_jp", (0xB0, 0xCF)),
    "gb18030": ("gb2312", (0xB0, 0xD7)),
    "big5": ("big5", (0xA4, 0xC6)),
}
_LETTERS: Final = {
    "cp1252": "àâäáãåæçéèêëíìîïñóòôöõøœúùûüß",
    "cp1250": "ąćęłńóśźżáčďéěíňřšťúůýžőűöüäßâăîşţđľĺŕô",
    "cp1254": "çğıöşüâîû",
    "cp1251": "абвгдежзийклмнопрстуфхцчшщъыьэюяёієїґ",
}
_MARKS: Final = "€£¥©®°§«»–—…‘’“”„•·№, \u00a0"


def likely_encodings(content: bytes) -> list[tuple[str, str]]:
    """Return the likeliest encodings of *content*, each with the first words that need it; none for what is no text."""
    sample = content[:_SAMPLE]
    if len(content) > _SAMPLE:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    if b"\0" in sample:
        half = len(sample) // 2
        wide = [name for name, at in (("utf-16-le", 1), ("utf-16-be", 0)) if sample[at::2].count(0) > 0.5 * half]
        return [(name, _words(sample[: 2 * half].decode(name, "replace"))) for name in wide]
    shares = {name: _share(sample, name) for name in ("cp949", *_FIRST_LEVEL, *_LETTERS)}
    best = max(shares.values())
    if best < _LIKELY:
        return []
    names = [name for name, share in shares.items() if share >= max(best - 0.02, _LIKELY)]
    texts: dict[str, str] = {}
    for name in names:  # the first of several that read the same
        texts.setdefault(sample.decode(name), name)
    return [(name, _words(text)) for text, name in texts.items()][:_MOST_NAMED]


def _share(sample: bytes, name: str) -> float:
    """Return the share of the letters beyond ASCII that are usual in the languages of an encoding."""
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return 0.0
    letters = [letter for letter in text if not letter.isascii() and letter not in _MARKS]
    if not letters:  # an amount in euros, say
        return float(name == "cp1252" and not text.isascii())
    if name == "cp949":
        return sum("\uac00" <= letter <= "\ud7a3" for letter in letters) / len(letters)
    if name in _FIRST_LEVEL:
        return sum(map(_is_frequent, letters, [name] * len(letters))) / len(letters)
    usual = set(_LETTERS[name])
    share = sum(letter.lower() in usual for letter in letters) / len(letters)
    foreign = [word for word in re.findall(r"[^\W\d_]+", text) if not word.isascii()]
    pure = sum(len(word) > 2 and not any(map(str.isascii, word)) and not word[1:].isupper() for word in foreign)
    is_cyrillic = pure > 0.5 * len(foreign)
    return share if is_cyrillic == (name == "cp1251") else 0.0


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
