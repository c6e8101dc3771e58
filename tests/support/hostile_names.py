"""Names that want to be more than names, for every test of what shows, says, writes or sends them.

`NAMES` are the kinds, `TITLES` those that three games have in `CONFIG`, an organisation for a `Stage`; `played` puts
players, purchases and ad impressions with such networks into it, and a history before which a health board can judge.
"""

from __future__ import annotations

import json
import unicodedata
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, Final

from support.game_events import NOW, event
from support.sandbox_stage import Stage

NAMES: Final = {
    "tag": "<img src=x onerror=alert(1)>",
    "end of script": "</script><script>alert(2)</script>",
    "end of attribute": "\"'><svg/onload=alert(3)>",
    "end of comment": "--><iframe src=javascript:alert(4)></iframe><!--",
    "formula": "=cmd|' /C calc'!A0",
    "other formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula behind a tab": "\t=1+1",
    "negative": "-2+3",
    "mathjax": "$\\href{javascript:alert(5)}{x}$ and $$y$$",
    "markdown": "[click](javascript:alert(6)) ![x](http://evil.example/x.png) **b** `c` # d",
    "template": "%{meta} {{constructor.constructor('alert(7)')()}} ${alert(8)} {0} %(x)s",
    "turned around": "photo\u202egnp.exe\u2066 \u2069",
    "terminal": "bell\x07 red\x1b[31m clear\x1b[2J title\x1b]0;owned\x07 \x9b1m",
    "terminal markup": "[bold red]x[/] [link=file:///etc/passwd]y[/link]",
    "lines": "first\nsecond\r\nthird\u2028fourth",
    "unseen": "\ufeffzero\u200bwidth\u00ad",
    "long": "A very long name " * 60,
    "path": "../../../../etc/passwd\\..\\con",
    "sql": "'; DROP TABLE events; --",
    "quote": "he said \"no\", twice; then, 'yes'",
    "emoji": "👩‍👩‍👧‍👦 e\u0301 ﷽",
    "number": "1e309",
    "nothing": "NaN",
    "unknown": "(unknown)",
}
TITLES: Final = (NAMES["tag"], NAMES["formula"], NAMES["end of script"])
DAYS: Final = 3
HISTORY: Final = 40


def _text(name: str) -> str:
    """*name* as a string of TOML."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


CONFIG: Final = f"""
[[organisation]]
name = {_text(NAMES["markdown"])}
api_key = "key-of-acme"
  [[organisation.studio]]
  id = "s1"
  name = {_text(NAMES["mathjax"])}
    [[organisation.studio.game]]
    id = "1001"
    title = {_text(TITLES[0])}
    [[organisation.studio.game]]
    id = "1002"
    title = {_text(TITLES[1])}
  [[organisation.studio]]
  id = "s2"
  name = {_text(NAMES["terminal"])}
    [[organisation.studio.game]]
    id = "2001"
    title = {_text(TITLES[2])}
"""


def played(stage: Stage) -> Stage:
    """*stage* with a player of each game on each of the last `DAYS` days, who saw an ad of every network.

    In the `HISTORY` before each game had forty players a day, so that its last days stand out.
    """
    for place, game_id in enumerate(("1001", "1002", "2001")):
        before = [
            event(user_id=f"{player}", client_ts=int((NOW - timedelta(days=day)).timestamp()), build=NAMES["tag"])
            for day in range(DAYS + 1, HISTORY)
            for player in range(40)
        ]
        assert stage.submit(before, game_id=game_id).status_code == 200
        for day in range(1, DAYS + 1):
            assert stage.submit([*_day(day, place)], game_id=game_id).status_code == 200
    stage.process()
    return stage


def _day(day: int, place: int) -> list[dict[str, Any]]:
    noon = int((NOW - timedelta(days=day)).timestamp())
    about = {"user_id": "ann", "client_ts": noon, "build": NAMES["tag"]}
    seen = [
        event(
            category="impression",
            ad_network_name="max",
            ad_network_version="1.2",
            impression_data={"network_name": name, "revenue": 0.01 * (number + 1 + place), "adunit_name": name[:60]},
            **about,
        )
        for number, name in enumerate(NAMES.values())
    ]
    bought = {"event_id": "pack:gold", "amount": 499 + place, "currency": "USD", "transaction_num": 1}
    return [event(**about), event(category="business", **about, **bought), *seen]


def obeyed(text: str) -> set[str]:
    """The letters of *text* that a terminal or a reader's eye would obey: controls, breaks, and what turns a line."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return {
        letter
        for letter in text
        if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(letter) in turning
    }


class Elements(HTMLParser):
    """The elements of a page, as a browser finds them: `[(name, attributes), ...]`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def names(self) -> set[str]:
        """Their names."""
        return {name for name, _ in self.found}

    def dangers(self) -> list[tuple[str, dict[str, str | None]]]:
        """Those that run, load or lead somewhere."""
        runs = {"img", "svg", "iframe", "object", "embed", "a", "link", "base", "form", "video", "audio", "math"}
        return [it for it in self.found if it[0] in runs or any(name.startswith("on") for name in it[1])]
