"""The role of each column of an outside table, with its evidence.

An argument says it, or else the format of a vendor (`vendors.toml`), the words of the header (`lexicon.toml`), or the
cells. Evidence that the cells contradict falls to the next.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.ads.canonical_names import KINDS, canonical_name
from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.files.currency_names import Currencies, currencies_in, currencies_of_code
from gamelens.analysis.files.date_parsing import NotTimes, ParsedTimes, read_times
from gamelens.analysis.files.day_ranges import ranges_of
from gamelens.analysis.files.days_without_year import NoYear, dates_of
from gamelens.analysis.files.number_parsing import WrittenNumbers, are_like, say_nothing, written_numbers
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.fiscal_periods import fiscal_times
from gamelens.analysis.outside_data.stated_years import days_beside
from gamelens.analysis.outside_data.words.header_words import any_phrase, folded_header, is_eastern
from gamelens.analysis.outside_data.words.money_units import without_rupees, without_unit
from gamelens.analysis.outside_data.words.tax_words import without_tax
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.analysis.outside_data.words.total_words import (
    AVERAGE,
    AVERAGE_AT_ONE_END,
    CANDIDATES,
    LEXICON,
    NAMELESS,
    TOTAL,
    TOTAL_AT_ONE_END,
)
from gamelens.analysis.outside_data.words.value_words import is_of_postbacks, is_value, value_in
from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.currencies import USD_PER_UNIT

Role = Literal[
    "amount", "count", "rate", "price", "rank", "cumulative", "stock", "distinct", "exchange_rate", "number", "day",
    "start", "end", "hour", "country", "network", "campaign", "app", "platform", "format", "currency", "identifier",
    "text", "flag",
]  # fmt: skip
ROLES: Final[tuple[Role, ...]] = get_args(Role)
MEASURES: Final = frozenset(ROLES[:10])
"""Roles of numbers."""
SUMMANDS: Final = frozenset({"amount", "count"})
"""Roles that add up."""
MEASURED: Final = "measured"
"""Concept of counts that may have parts: 38.5 hours, 3.2 GB."""
TIMES: Final = frozenset({"day", "start", "end", "hour"})
KEYS: Final = frozenset({"country", "network", "campaign", "app", "platform", "format"})

_PER: Final = re.compile(  # in folded letters: ต่อ is ตอ, प्रति is परत
    r"(?<!\w)(per|pro|par|por|pr|pe|je|na|za|на|за|moi|ανα|परत|basina|pour|fur|for|ca)(?!\w)"
    r"|/|(.+)(?:あたり|当たり)|당 |ตอ|لكل|לכל|(?<!\w)(?!nap|het|hav|orszag)\w+[oe]nkenti?(?!\w)"
    r"|(?<!\w)ל(?=(?:תוצאה|התקנה|קליק|הקלקה|המרה|חשיפה|פעולה)(?!\w))|每(?=次|千|个|個|位|人)"
)
_SURE_PER: Final = frozenset({"per", "moi", "ανα", "परत", "ตอ", "لكل", "לכל", "ל", "每"})
"""Words of these that stand between two measures, also if one of them is not known."""
_BETWEEN_AMOUNT_AND_THING: Final = frozenset({"pro", "je", "pr", "basina"})
"""Words that stand beside what is counted, known or not, unless it is a time or the name of a key."""
_ONLY_OF_MANY: Final = frozenset({"pour", "fur", "for", "ca"})
"""Words that say what an amount is for, and a rate only before a thousand."""
_WORTH: Final = frozenset({"income", "money"})
_THOUSAND: Final = re.compile(
    r"(?:cada |each |a |chaque )?(?:1 ?000|mille|mil|thousand|tausend|tys\w*|tisic|bin|ezer|mie|ribu|nghin"
    r"|тыс\w*|พน|ألف|الف|אלף|हजार|千)(?!\d)"
)
"""A number that a rate has below: it is no unit of the numbers."""
_EASTERN_PER: Final = re.compile(r"(?<=.)(?:당|あたり|当たり|basina|(?:成本|单价|單價|単価|단가)$)")
"""Behind what a cost is for: 설치당비용, 激活成本, インストール単価."""
_EASTERN_TIME: Final = re.compile("[日月週年]")
_HEAD_FIRST: Final = re.compile(
    r"(?<!\w)(?:of|from|for|by|de|del|des|der|di|da|do|dos|du|por|par|pour|para|від|за|en)(?!\w)"
)
_OF_FORMAT: Final = re.compile(r"\[\$|-[0-9A-Fa-f]+\]|[\[\]\"]")
"""What stands around a symbol in the number format of a workbook: [$€-413] #,##0."""
_MICROS: Final = re.compile(r"(?<!\w)micros?(?: ?units?)?(?!\w)")
_MEAN: Final = re.compile(
    r"(?:posicion|posicao|posizione|duracion|duracao|durata|frecuencia|frequencia|frequenza|tasa|taxa|nota|valoracion"
    r"|avaliacao|edad|idade|puja|oferta|sesion|sessao|sessione|retencion|retencao|compra|profundidad|cuota|quota|visita)"
    r" media(?!\w)|(?<!\w)medias? (?:de|di|da|do|del|della|dei)(?!\w)"
)
"""An average in Spanish, Portuguese and Italian: posición media, media de clics. Alone it is what is bought."""
_PRICING: Final = re.compile(r"(?:v ?)?cp[acdimtv]")
"""How ads are paid: per click, per install, per thousand shown."""
_EFFECTIVE: Final = re.compile(r"(?<![^\W_])e-?CP[ACDIMTV]")
_OF_MODELS: Final = re.compile(
    rf"{_HEAD_FIRST.pattern}|(?<!\w)(?:with|aus|von|mit|van|av|af|fra|z|ze|od|с|от|з|від|din)(?!\w)"
)
"""What stands between an amount and how it is paid: Receita de CPM."""
_UNIT_COST: Final = re.compile(
    r"(?:cost|coste|costo|costi|custo|kosten|cout|koszt|kostnad|omkostning|omkostninger|maliyet|naklady|стоимость|вартість"
    r"|费用|費用|成本|コスト|비용|chi phi|biaya)s?"
)
"""Costs of one click or install too: CPC cost, unlike CPC spend."""
_OF_ALL: Final = re.compile(
    r"(?<!\w)(?:total\w*|totale|gesamt\w*|sum|suma|summe|somme|soma|lacznie|razem|toplam|итого|всего|общ\w+)(?!\w)|总|總|合計|합계|총"
)
_ACRONYM: Final = re.compile(r"[A-Z]{2,5}\d*")
"""A measure whose letters nobody knows, such as CPP, the cost of a preload."""
_SIGNS: Final = re.compile(r"(?:[A-Z]{1,3})?[$\uff04\u00a3\u00a5\uffe1\uffe5\uffe6\u20a0-\u20bf]")
_EXCHANGE: Final = re.compile(
    r"(?:.*?[^a-z])??([a-z]{3})[ _]*(?:per|/|to|in|-)?[ _]*([a-z]{3})(?:[^a-z].*)?", re.IGNORECASE
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]00:00(?::00(?:\.0+)?)?)?")
_MONTHS: Final = 12
_RATE_OF_CHANGE: Final = re.compile(
    r"(?<!\w)(?:growth rate|rate of change|pct|per ?cent"
    r"|prozent|pourcent\w*|por ?ciento|porcentaje|процент\w*)(?!\w)"
    r"|[环環]比|同比|前[週月年日期]比|昨対|伸び率|成長率|成长率|增长率|增長率|증감률|증가율|성장률|전[주월년]비"
)
_PERCENT: Final = re.compile(  # beside what it is of, or from week to week
    r"(?<!\w)(?:[DWMQY]o[DWMQY]|[DWMQY]O[DWMQY])(?!\w)|[(\[（][^()\[\]（）\d]*[%％][^()\[\]（）\d]*[)\]）]"
)
_UNITS: Final = re.compile(
    r"(?<!\w)(?:units?|quantity|qty|menge|stuck(?:zahl)?|quantite|unites|cantidad|unidades|quantidade|quantita|ilosc)(?!\w)"
    r"|数量|個数|수량"
)
_ROMANCE: Final = r"(?i:gasto|custo|coste|costo|investimento|inversi[oó]n|importe|receita|ingreso|instalac\w+)s?"
_GOAL: Final = re.compile(  # in small letters; Meta is who is paid
    rf"(?<![^\W_]){_ROMANCE}[ _]meta(?![^\W_])|(?<![^\W_])meta[ _]{_ROMANCE}"
)
_OF_WHOM: Final = re.compile(  # where clicks lead to, and who is shown ads: no plan
    r"(?<!\w)target(?:ed)? (?:page|url|site|website|audience|group|country|countries|market|region|language|device|app"
    r"|store|user|users|segment|location)s?(?!\w)|(?<!\w)(?:publico|mercado|pagina|pays|page|marche|audience|public|pais)"
    r" (?:objetivo|objectif|cible|obiettivo|alvo)s?(?!\w)"
    r"|(?:目标|目標|타겟|목표)\s?(?:页面?|頁面?|网页|網頁|网址|網址|网站|網站|链接|受众|受眾|人群|用户|用戶|市场|市場|地区|地區|国家|國家|应用|應用"
    r"|ページ|サイト|オーディエンス|ユーザー|国|地域|アプリ|페이지|사이트|고객|국가|지역|앱|사용자)"
)
_WEEK_ENDING: Final = re.compile(
    r"(?<!\w)(?:week (?:ending|ended|end|to|until)|wk ending|w / e|weekending|woche (?:bis|endet)"
    r"|semaine (?:se terminant|finissant|au)|semana (?:que termina|hasta|ate|finalizada)|settimana (?:fino|terminante)"
    r"|tydzien (?:do|konczacy)|week (?:tot|t / m)|vecka till|uge til|uke til|tyden do|hafta (?:sonu|bitis)"
    r"|неделя (?:по|до)|тиждень до|週末日|周截止|주 종료)(?!\w)"
)
CHANNELS: Final = frozenset(
    {
        "twitch", "youtube", "you tube", "youtube shorts", "tiktok", "tik tok", "instagram", "ig", "facebook", "kick",
        "twitter", "x", "x twitter", "snapchat", "discord", "reddit", "bilibili", "b站", "douyin", "抖音", "快手",
        "kuaishou", "小红书", "xiaohongshu", "weibo", "微博", "niconico", "afreecatv", "soop", "chzzk", "vk",
        "vk video", "telegram", "trovo", "rumble", "pinterest", "linkedin", "threads", "podcast",
    }
)  # fmt: skip
"""Folded names of where creators post, which a column called Platform may hold."""
_ACTIVE: Final = re.compile(
    r"(?:active|aktive|aktivni|aktywne) (?:\w+ )*(?:subscription|subscriber|member|abo|abonnement|abonnent|predplatne"
    r"|subskrypcje|prenumerationer)s?|(?:abonnements?|abonnes|suscripciones|suscriptores|assinaturas|assinantes|abbonamenti)"
    r" (?:\w+ )*(?:actifs?|activ[ao]s|ativ[ao]s|attivi)"
)
"""What is there on a day, whatever words stand within: active standard price subscriptions."""
_TYPE_OF: Final = re.compile(
    r"(?P<first>type|tipo|typ|tip|tyyppi|rodzaj|jenis|loai|тип|вид|نوع|סוג|ประเภท)s?(?!\w)"
    r"(?: d[eiu]| del| della| dos?)? ?.+"
    r"|.+ (?P<last>type|typ|art|turu|tipi|tyyppi|tipus)|.+?(?:类型|類型|タイプ|種別|유형|종류)"
)
_SAYS_LAST: Final = frozenset(LEXICON["says_last"]["words"])
_BEHIND_MEASURES: Final = frozenset(LEXICON["behind_measure"]["words"])
_COMPLEMENT: Final = re.compile(
    r"(?:of|de|del|dell|della|des|du|da|do|d|for|from|by|in|per|on|to|with|via|after|before|including|excluding|incl|excl|w|/|%|\d|d\d|day|last|this|since)(?!\w)"
)
"""Begins what says more of a measure, as its days or where it is of."""
_EXPLAINING: Final = MEASURES | KEYS | {"modifier", "currency"}
_COUNTED_THINGS: Final = frozenset({"installs", "clicks", "impressions", "sessions", "people", "views", "requests"})
_AMOUNT_OF: Final = re.compile(r"amount of ")
_TAILS: Final = re.compile(
    r"合计|合計|总计|總計|小计|小計|总额|總額|总数?(?=$)|累计|累計|金额|金額|実績|实际|実際|等|额|額|高|計|计|値|值|합계|총액|금액|액"
    r"|人民币|人民幣|美元|美金|日元|日圆|円|元|千|万|萬|億|亿|원|엔|달러|천|만|억|含|不|未|税|稅|込み?|抜き?|别|別|後|后|前|부가세|포함|별도|제외"
    r"|当日|当月|今日|今月|本日|本月|年|月|日|天|週|周"
)
"""What stands behind an amount and leaves it one."""
_COUNT_TAILS: Final = re.compile(
    rf"数量|數量|次数|次數|回数|件数|人数|人數|总数|總數|数|數|量|次|回|件|수량|횟수|건수|명수|수|건|명|去重|{_TAILS.pattern}"
)
_COUNT_AT_END: Final = re.compile(r"(?:件数|件數|回数|次数|次數|人数|人數|台数|건수|횟수|인원|명수)$")
_RATE_AT_END: Final = re.compile(r"[가-힣]{2,}(?<!환)[율률]$")
_NUMBER_OF: Final = frozenset({"number", "numero", "nombre", "numbers", "count", "anzahl", "quantity", "quantite"})
_OF_KINDS: Final = frozenset({"events", "conversions", "installs"})
_GOALS: Final = frozenset(
    {
        "goal", "goals", "objective", "ziel", "objectif", "objetivo", "obiettivo", "цель", "目标", "目標", "목표",
        "ereignis", "evenement", "evento", "zdarzenie", "olay", "событие", "подія", "事件", "イベント", "이벤트",
        "su kien", "peristiwa",
    }
)  # fmt: skip
"""Folded headers of texts that say what the counts beside them are of."""
_ONE_KIND: Final = re.compile(  # of the conversions and events of the lexicon
    r"purchase|order|registration|kauf|achat|compra|acquist|покупк|crash|share|install|upgrade|update"
)
_PLATFORM: Final = r"android|ios|iphone|ipad|google play|app store"
_BESIDE_APP: Final = re.compile(rf"(?i)(?:.*[\w)\]][\s_:|,/.–-]+)({_PLATFORM})|({_PLATFORM})[\s_:|,/–-]+.+")
_PLATFORM_WORD: Final = re.compile(rf"(?i)(?<![^\W_])(?:{_PLATFORM})(?![^\W_])")
_LAST_HOUR: Final = 23
_MOST_LABELLED: Final = 2_000  # rows of a bill
_TRIED: Final = 500  # distinct texts that are looked at one by one
_FEWEST_NUMBERS: Final = 1 / 3
_FLAGS: Final = frozenset({"true", "false", "yes", "no"})
_HERE: Final = Path(__file__)


@suggests_names
@dataclass(frozen=True)
class Evidence:
    """A reason for what is said of a column: *says* "CAD", *where* "column of codes", *quote* "Currency code"."""

    says: str
    where: str
    quote: str = ""

    def __str__(self) -> str:
        return f"{self.says} by {self.where}{f' ({self.quote})' if self.quote else ''}"


class Concept(NamedTuple):
    """What words of a header mean.

    *of* are the concepts of numerator and denominator of a rate, and the factor of their quotient.
    """

    name: str
    role: Role | Literal["modifier"]
    of: tuple[str, str, float] | None = None


@suggests_names
@dataclass(frozen=True)
class Meaning:
    """What one evidence says of a column.

    Attributes:
        role: the role.
        evidence: who says it.
        concept: the concept of the lexicon, such as "clicks"; "cost" and "income" for amounts.
        of: the concepts of a rate, or the names of columns if *details* has them.
        details: what else an argument or a vendor says: currency, of, weight, scale, negative.
    """

    role: Role
    evidence: Evidence
    concept: str = ""
    of: tuple[str, str, float] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class ColumnCells:
    """The cells of one column, looked at when a role asks."""

    def __init__(
        self,
        grid: Grid,
        name: str,
        day_first: bool | None = None,
        *,
        year: int | None = None,
        magnitudes: Mapping[str, float] | None = None,
        is_text: bool = False,
        keeps_labels: bool = False,
    ) -> None:
        self.name, self._year, self._magnitudes = name, year, magnitudes
        self._keeps_labels = keeps_labels
        self.labels: tuple[str, ...] = ()  # in a column of days that is read, the texts that name their rows
        self.is_typed = not grid.is_text(name)
        self.type = grid.cells.column(name).type
        self._grid, self._day_first, self._is_text = grid, day_first, is_text

    @cached_property
    def _texts(self) -> tuple[Any, NDArray[np.int32]]:
        return self._grid.texts(self.name)

    @property
    def distinct(self) -> Any:
        """The distinct texts, an Arrow array."""
        return self._texts[0]

    @property
    def codes(self) -> NDArray[np.int32]:
        """The place of each row's text, -1 for none."""
        return self._texts[1]

    @property
    def numbers_of_values(self) -> NDArray[np.integer[Any]]:
        """A number for each row, the same where the cells are, -1 for none."""
        return pd.factorize(self.values)[0] if self.is_typed else self.codes

    @cached_property
    def texts(self) -> list[str]:
        """The distinct texts as Python has them, which takes ten times the memory."""
        return self.distinct.to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def values(self) -> Any:
        """The values of a typed column."""
        return self._grid.numbers(self.name)

    @cached_property
    def unlike_names(self) -> dict[int, str]:
        """The texts that have a word of totals, or no letter and no digit, by their place."""
        has_word = np.asarray(pc.match_substring_regex(pc.utf8_lower(self.distinct), CANDIDATES))
        places = np.flatnonzero(has_word | are_like(self.distinct, NAMELESS))
        return {int(place): self.distinct[int(place)].as_py() for place in places}

    @cached_property
    def _is_name(self) -> NDArray[np.bool_]:
        """Whether each text names something: it is not of totals, and not for no value."""
        is_name = ~say_nothing(self.distinct)
        for place, text in self.unlike_names.items():
            is_name[place] &= not (TOTAL.fullmatch(text) or AVERAGE.fullmatch(text))
        return is_name

    @cached_property
    def _is_day(self) -> NDArray[np.bool_]:
        """Whether each text may name a day: it has no word of totals at one of its ends, either."""
        is_day = self._is_name.copy()
        for place, text in self.unlike_names.items():
            is_day[place] &= not (TOTAL_AT_ONE_END.fullmatch(text) or AVERAGE_AT_ONE_END.fullmatch(text))
        return is_day

    def _labels_among_days(self) -> NDArray[np.bool_]:
        """Return which texts name their rows, in a column of days: plus VAT, below the periods of a bill.

        They are no days. Their rows have numbers, and fewer cells than any row with a day, or the reader counts them.
        """
        labels = np.zeros(len(self.distinct), dtype=bool)
        is_long = len(self.codes) > _MOST_LABELLED or len(self.distinct) > _TRIED
        if is_long or not self.example or not _is_one_time(self.example, self.name):
            return labels
        reads = np.array([_is_one_time(text, self.name) for text in self.texts], dtype=bool)
        columns = [self._grid.cells.column(name) for name in self._grid.columns]
        filled = np.sum([column.is_valid().to_numpy() for column in columns], axis=0)
        has_day = np.append(reads, False)[self.codes]
        if 2 * has_day.sum() < (self.codes >= 0).sum():
            return labels
        has_number = np.zeros(len(self.codes), dtype=bool)
        for name in [name for name in self._grid.columns if name != self.name]:
            texts, codes = self._grid.texts(name)
            has_number |= np.append(np.asarray(pc.match_substring_regex(texts, r"\d"), dtype=bool), False)[codes]
        for place in np.flatnonzero(self._is_day & ~reads):
            rows = self.codes == place
            are_short = bool((filled[rows] < filled[has_day].min()).all())
            labels[place] = has_number[rows].any() and (self._keeps_labels or are_short)
        return labels

    @cached_property
    def named(self) -> list[str]:
        """The distinct texts that name something."""
        return self.texts if self._is_name.all() else self.distinct.filter(pa.array(self._is_name)).to_pylist()

    @property
    def example(self) -> str:
        """The first text that names something, "" without one."""
        is_there = not self.is_typed and self._is_name.any()
        return self.distinct[int(self._is_name.argmax())].as_py() if is_there else ""

    @cached_property
    def numbers(self) -> WrittenNumbers:
        """The numbers of a column of text."""
        return written_numbers(self.distinct, self._magnitudes)

    @cached_property
    def likely_numbers(self) -> NDArray[np.float64]:
        """The number of each row before the decimal mark is known for sure, NaN for none."""
        if self.is_typed:
            values: NDArray[np.float64] = self.values.to_numpy(dtype="float64", na_value=np.nan)
            return values
        return np.append(self.numbers.values((self.numbers.fitting or (".",))[0]), np.nan)[self.codes]

    def release_numbers(self) -> None:
        """Forget `likely_numbers`, eight bytes a row, which are made again if they are asked for."""
        self.__dict__.pop("likely_numbers", None)

    @cached_property
    def is_number(self) -> bool:
        """Whether most cells are numbers, and not names of digits."""
        if self.is_typed:
            return bool(pa.types.is_integer(self.type) or pa.types.is_floating(self.type)) and not self._is_text
        if self._is_text or not len(self.distinct):
            return False
        numbers = self.numbers
        if not numbers.is_number.any() or numbers.are_names or numbers.may_be_names:
            return False
        return self._share_of_numbers > 0.5

    @cached_property
    def _share_of_numbers(self) -> float:
        """The share of rows with a number among the rows that have a value and are no totals."""
        numbers = self.numbers
        rows = np.bincount(self.codes + 1, minlength=len(self.distinct) + 1)[1:]
        other = ~(numbers.is_number | numbers.is_empty | numbers.is_error)
        for place, text in self.unlike_names.items():
            other[place] &= not (TOTAL.fullmatch(text) or AVERAGE.fullmatch(text))
        count = rows[numbers.is_number].sum()
        return float(count / max(count + rows[other].sum(), 1))

    def rows_of(self, text: str) -> NDArray[np.bool_]:
        """Return which rows have *text*."""
        return np.asarray(self.codes == self.texts.index(text))

    @property
    def may_be_number(self) -> bool:
        """Whether the cells are numbers for a header that says so: a third of them is enough."""
        if self.is_typed or self._is_text or not len(self.distinct):
            return self.is_number
        return self._share_of_numbers > _FEWEST_NUMBERS and not self.numbers.are_names

    @property
    def is_percent(self) -> bool:
        """Whether its numbers are percentages."""
        return not self.is_typed and self.may_be_number and bool(self.numbers.is_percent.any())

    @property
    def has_units(self) -> bool:
        """Whether a currency stands beside its numbers."""
        return not self.is_typed and self.may_be_number and bool((self.numbers.units != "").any())

    @property
    def has_money_format(self) -> bool:
        """Whether cells of a workbook have a number format that names a currency."""
        forms = dict.fromkeys(form for form in self._grid.formats.get(self.name, ()) if form)
        return any(currencies_in(_OF_FORMAT.sub(" ", form)) for form in forms)

    @property
    def has_currency(self) -> bool:
        """Whether its header, its cells or their format name a currency."""
        return bool(currencies_in(self.name, is_header=True)) or self.has_units or self.has_money_format

    @property
    def is_whole(self) -> bool:
        """Whether all its numbers are whole."""
        if self.is_typed:
            known = self.values.dropna().to_numpy(dtype="float64")
            return bool((known == np.floor(known)).all())
        marks = self.numbers.fitting or (".",)
        return any(bool((self.numbers.values(mark) % 1 > 0).sum() == 0) for mark in marks)

    @property
    def is_flag(self) -> bool:
        """Whether it holds flags."""
        if self.is_typed:
            return bool(pa.types.is_boolean(self.type))
        are_few = 0 < len(self.distinct) <= 4 * len(_FLAGS)
        return are_few and not self._is_text and {text.casefold() for text in self.texts} <= _FLAGS

    @cached_property
    def times(self) -> ParsedTimes | BadQuery:
        """Its times, by distinct text and with one for none at the end, or why they cannot be read."""
        return self._read_times()

    def times_with(self, details: Mapping[str, Any]) -> ParsedTimes | BadQuery:
        """Return its times with what is said of them: *local* are days where the account is, a *language* of names."""
        are_months = details.get("role") == "month"
        read = self.times
        if {"language", "first"} & details.keys() or (are_months and isinstance(read, NoYear)):
            read = self._read_times(details.get("language"), details.get("first"), are_months=are_months)
        if details.get("local") and isinstance(read, ParsedTimes) and read.written is not None:
            return replace(read, at=read.written, written=None)
        return read

    def _read_times(
        self, language: str | None = None, first: str | None = None, *, are_months: bool = False
    ) -> ParsedTimes | BadQuery:
        hints: dict[str, Any] = {"field": self.name, "day_first": self._day_first, "language": language}
        hints["beside"] = self._grid.columns
        days = self.texts if self._is_day.all() else self.distinct.filter(pa.array(self._is_day)).to_pylist()
        try:
            try:
                fiscal = fiscal_times(days[:_TRIED], field=self.name, lines=self._grid.above, first=first)
                if fiscal is not None and len(days) > _TRIED:
                    fiscal = fiscal_times(days, field=self.name, lines=self._grid.above, first=first)
                read = fiscal or _ranges_and_others(days, hints) or _dates_and_texts(days, hints)
                read = read or read_times(days, **hints)
            except NotTimes as error:
                if self._labels_among_days().any():
                    raise
                are_months |= any(concept.name == "month" for concept, _, _ in concepts_in(folded_header(self.name)))
                stated = days_beside(self._grid.above)
                within = stated.days if stated else None
                dated = dates_of(days, year=self._year, within=within, are_months=are_months, **hints)
                if dated is None:
                    return error
                by = f"year={self._year}" if self._year is not None else repr(stated.line) if stated else "its cells"
                note = f"{self.name}: {days[0]} is read as {dated[0]}, by {by}"
                read = replace(read_times(dated, field=self.name), note=note, is_dated=True)
        except BadQuery as error:
            if not (labels := self._labels_among_days()).any():
                return error
            self.__dict__["_is_day"] = self._is_day & ~labels
            self.labels = tuple(self.texts[place] for place in np.flatnonzero(labels))
            return self._read_times(language, first, are_months=are_months)
        at, until, written = map(self._of_texts, (read.at, read.until, read.written))
        return read if at is None else replace(read, at=at, until=until, written=written)

    def _of_texts(self, named: NDArray[np.datetime64] | None) -> NDArray[np.datetime64] | None:
        """Return the times of all texts from the times of the named ones, and none at the end."""
        if named is None:
            return None
        every = np.full(len(self.distinct) + 1, np.datetime64("NaT", "us"))
        every[:-1][self._is_day] = named
        return every

    @property
    def are_times(self) -> bool:
        """Whether it holds days or times, also if these can be read in two ways."""
        if self.is_typed:
            return bool(pa.types.is_timestamp(self.type)) or (self.is_whole and self.is_number and self._reads_times())
        return not self._is_text and any(letter.isdigit() for letter in self.example) and self._reads_times()

    @property
    def _lack_year(self) -> bool:
        """Whether it holds days or months without a year, whatever else 1/2 may be."""
        is_dated = isinstance(self.times, ParsedTimes) and self.times.is_dated
        return not self.is_typed and not self._is_text and (is_dated or isinstance(self.times, NoYear))

    def _reads_times(self) -> bool:
        return not (isinstance(self.times, NotTimes) or (isinstance(self.times, ParsedTimes) and self.times.is_dated))

    @cached_property
    def odd_times(self) -> list[str]:
        """The texts that are no times in a column of times, where those are most of its rows."""
        if self.is_typed or self._is_text or not isinstance(self.times, NotTimes):
            return []
        rows = np.bincount(self.codes + 1, minlength=len(self.distinct) + 1)[1:]
        odd: dict[str, int] = {}
        times = 0
        for place, text in enumerate(self.texts[:_TRIED]):
            if not self._is_day[place]:
                continue
            try:
                is_odd = read_times([text], field=self.name).until is not None  # a period beside days
            except NotTimes:
                is_odd = True
            except BadQuery:  # a day that can be read in two ways
                is_odd = False
            if is_odd:
                odd[text] = int(rows[place])
            times += 0 if is_odd else int(rows[place])
        return [*odd] if sum(odd.values()) < times else []

    @cached_property
    def are_countries(self) -> bool:
        """Whether at least half of its names are countries."""
        named = self.named[:500]
        return bool(named) and 2 * sum(canonical_name(text, "country") is not None for text in named) >= len(named)

    @cached_property
    def are_networks(self) -> bool:
        """Whether at least half of its names are networks, not all of them are platforms too, and none is only one."""
        named = [text for text in self.named[:_TRIED] if len(text.strip()) > 1]  # an x marks a row
        of_networks = [any(canonical_name(text, kind) for kind in ("publisher", "network")) for text in named]
        of_platforms = [canonical_name(text, "platform") is not None for text in named]
        pairs = [*zip(of_networks, of_platforms, strict=True)]
        is_known = (True, False) in pairs and (False, True) not in pairs
        return is_known and 2 * sum(of_networks) >= len(named)

    @cached_property
    def are_channels(self) -> bool:
        """Whether some of its names are sites with videos and posts, such as Twitch, and none is a platform."""
        named = self.named[:_TRIED]
        folded = {folded_header(text) for text in named}
        return bool(folded & CHANNELS) and all(canonical_name(text, "platform") is None for text in named)

    @property
    def are_currencies(self) -> bool:
        """Whether all its names are codes of currencies."""
        return bool(self.named) and all(len(currencies_of_code(text)) == 1 for text in self.named)

    def allows(self, meaning: Meaning) -> bool:
        """Return whether the cells do not contradict *meaning*."""
        if not self.is_typed and not len(self.codes):  # nothing contradicts the header of an empty table
            return True
        if not self.is_typed and not self._is_name.any():
            return meaning.role not in TIMES and any(text.strip() for text in self.texts)
        match meaning.role:
            case "count" | "distinct" | "rank" | "cumulative" | "stock":
                is_rank = meaning.role == "rank"
                return (
                    self.may_be_number and not self.is_percent and not self.has_units and (not is_rank or self.is_whole)
                )
            case "amount" | "price" | "exchange_rate":
                return self.may_be_number and not self.is_percent
            case "rate" | "number":
                return self.may_be_number
            case "day" | "start" | "end" | "hour":
                return self._allows_time(meaning)
            case "country":
                return self.are_countries
            case "currency":
                return self.are_currencies
            case "network" | "campaign" | "app" | "platform" | "format":
                is_name = not self.is_number and not self.is_flag
                return is_name and not (meaning.role == "platform" and (self.are_networks or self.are_channels))
            case "flag":
                return self.is_flag
            case "text":  # a number with a word for names in its header, such as device upgrades, is none
                return not self.is_number or meaning.evidence.quote in (folded_header(self.name), self.name)
        return True

    def _allows_time(self, meaning: Meaning) -> bool:
        """Return whether its cells are times, or numbers that are hours of a day: of *hours*, most of these."""
        if meaning.role != "hour" or not self.is_number:
            return self.are_times or self._lack_year or bool(self.odd_times)
        known = np.unique(self.likely_numbers[~np.isnan(self.likely_numbers)])
        self.release_numbers()
        are_possible = self.is_whole and bool(((known >= 0) & (known <= _LAST_HOUR + 1)).all())
        is_several = meaning.evidence.quote == "hours" and folded_header(self.name).endswith("hours")
        return are_possible and not (is_several and (len(known) <= _LAST_HOUR / 2 or known[0] > 0))

    def own_meaning(self) -> Meaning:
        """Return what the cells alone say."""
        says: Role = "text"
        if self.is_flag:
            says = "flag"
        elif self.is_number:
            says = "rate" if self.is_percent else "amount" if self.has_units or self.has_money_format else "number"
        elif (
            not self.is_typed
            and len(self.distinct)
            and not self._is_text
            and self.numbers.are_names
            and self.numbers.other is None
        ):
            says = "identifier"
        elif (self.is_typed and pa.types.is_timestamp(self.type)) or (self.are_times and not self._is_text):
            says = "day"
        elif self.are_currencies:
            says = "currency"
        elif self.are_countries and all(len(text) == 2 and text.isupper() for text in self.named):
            says = "country"
        elif not self.is_typed and not self._is_text and self.are_networks:
            says = "network"
        return Meaning(says, Evidence(says, "cells", self.example))


def _is_one_time(text: str, name: str) -> bool:
    """Return whether a text alone is a day or a period, also one that can be read in two ways."""
    try:
        read_times([text], field=name)
    except NotTimes:
        return False
    except BadQuery:
        return True
    return True


def _ranges_and_others(texts: Sequence[str], hints: Mapping[str, Any]) -> ParsedTimes | None:
    """Return the periods of texts, some ranges of days and others days, weeks or months: 3 April, 21-22 Maret 2026."""
    if len(texts) > _TRIED:
        return None
    are_ranges = np.array([ranges_of([text.strip()]) is not None for text in texts], dtype=bool)
    if are_ranges.all() or not are_ranges.any():
        return None
    parts = [[text for text, is_of in zip(texts, mask, strict=True) if is_of] for mask in (are_ranges, ~are_ranges)]
    try:
        ranges, others = (read_times(part, **{**hints, "beside": [*hints["beside"], *texts]}) for part in parts)
    except BadQuery:
        return None
    if others.precision in ("time", "period") or ranges.until is None or others.until is not None:
        return None
    at, until = (np.empty(len(texts), dtype="datetime64[us]") for _ in range(2))
    at[are_ranges], at[~are_ranges] = ranges.at, others.at
    until[are_ranges] = ranges.until
    if others.precision == "month":
        ends = others.at.astype("datetime64[M]") + np.timedelta64(1, "M")
    else:
        ends = others.at.astype("datetime64[D]") + np.timedelta64(7 if others.precision == "week" else 1, "D")
    until[~are_ranges] = ends.astype("datetime64[us]")
    notes = "; ".join(note for note in (ranges.note, others.note) if note)
    return ParsedTimes(at, ranges.precision, until=until, note=notes or None)


def _dates_and_texts(texts: Sequence[str], hints: Mapping[str, Any]) -> ParsedTimes | None:
    """Return the days of texts, some dates of a spreadsheet and others days as people write them: 03/10/2026.

    None where a spreadsheet may have taken days for months: it reads 03/10 as 10 March, and 25/10 stays a text.
    """
    are_dates = np.array([_DATE.fullmatch(text.strip()) is not None for text in texts], dtype=bool)
    if are_dates.all() or not are_dates.any():
        return None
    parts = [[text for text, is_of in zip(texts, mask, strict=True) if is_of] for mask in (are_dates, ~are_dates)]
    if any(text.strip().isdecimal() for text in parts[1]):  # the number of a day in a spreadsheet
        return None
    try:
        dates, others = (read_times(part, **{**hints, "beside": [*hints["beside"], *texts]}) for part in parts)
    except BadQuery:
        return None
    days = [at.astype("datetime64[D]").astype("datetime64[M]") for at in (dates.at, others.at)]
    of_month = [
        (read.at.astype("datetime64[D]") - months).astype("int64") + 1
        for read, months in zip((dates, others), days, strict=True)
    ]
    is_swapped = bool((of_month[0] <= _MONTHS).all() and (of_month[1] > _MONTHS).all())
    if is_swapped or others.precision != "day" or others.until is not None:
        return None
    at = np.empty(len(texts), dtype="datetime64[us]")
    at[are_dates], at[~are_dates] = dates.at, others.at
    return ParsedTimes(at, "day", note=others.note)


def header_meanings(header: str) -> Iterator[Meaning]:
    """Yield what the words of a header may mean, the likeliest first.

    A measure beside a modifier, such as a planned cost, has that as its concept: it is none of the days of its row.
    """
    folded = _OF_WHOM.sub(" ", folded_header(header))
    modifiers = [concept.name for concept, _, _ in concepts_in(folded) if concept.role == "modifier"]
    modifiers += ["planned"] if _GOAL.search(header) else []
    for meaning in _meanings_of_words(header):
        is_modified = bool(modifiers) and meaning.role in MEASURES - {"exchange_rate", "rank"}
        yield replace(meaning, concept=modifiers[0], of=None) if is_modified else meaning
        if meaning.role == "hour" and meaning.evidence.quote == "hours":  # of work
            yield Meaning("count", Evidence("count", "header", "hours"), MEASURED)


def _meanings_of_words(header: str) -> Iterator[Meaning]:
    header = without_rupees(header)
    whole = folded_header(header)
    yield from _no_measures(whole)
    inner = " ".join(BRACKETS.findall(header))
    outer = folded_header(BRACKETS.sub(" ", header)) or folded_header(inner)
    if is_exchange(header):
        yield Meaning("exchange_rate", Evidence("exchange rate", "header", header))
    outer, inner = without_tax(without_unit(outer) or outer), without_tax(folded_header(inner))
    found, of_inner = _measures_and_keys(outer), _measures_and_keys(inner)
    are_people = _are_counts(found) and any(concept.role == "distinct" for concept, _, _ in of_inner)
    if (not found and of_inner) or are_people:  # purchases (unique users)
        outer, found = inner, of_inner
    found = _without_pricing(header, outer, _with_values(outer, found, inner))
    yield from _running_totals([*found, *of_inner])
    yield from _rates(header, outer, found, inner)
    codes = _currencies_beside(header)
    if codes and _are_counts(found):  # purchases (sales in USD): what they brought
        yield _amount_in(of_inner, codes)
    if len(found) > 1 and folded_header(found[0][1]) in _NUMBER_OF and found[1][0].role == "count":
        found = found[1:]  # number of installs
    if len(found) > 1 and found[0][1] == "amount" and found[1][0].name in _COUNTED_THINGS:
        found = found[1:] if _AMOUNT_OF.match(outer, found[0][2]) else found  # amount of installs
    yield from _meanings_of_phrases(outer, found)
    if is_at_end_of_day(header) and not any(concept.role in MEASURES for concept, _, _ in [*found, *of_inner]):
        yield Meaning("stock", Evidence("stock", "header", header), "stock")
    yield from _money_by_unit(header, whole)


def _meanings_of_phrases(outer: str, found: Sequence[tuple[Concept, str, int]]) -> Iterator[Meaning]:
    """Yield what each phrase *found* in a header says, the one that tells most first."""
    is_head_first = len(found) > 1 and _HEAD_FIRST.search(outer, found[0][2])
    for concept, phrase, at in found if is_head_first else reversed(found):
        if concept.role in SUMMANDS and not is_explained(outer[at + len(phrase) :], phrase, concept.role):
            continue
        if phrase == "sold" and at:  # bundles sold; in Romanian a balance begins with it
            concept = lexicon()["units sold"]
        if concept.role != "modifier":
            yield Meaning(concept.role, Evidence(concept.role, "header", phrase), concept.name, concept.of)


def _no_measures(whole: str) -> Iterator[Meaning]:
    """Yield what a folded header is by words that leave no measure in it: an end, a type, a stock, a code."""
    if (ending := _WEEK_ENDING.search(whole)) is not None:
        yield Meaning("end", Evidence("end", "header", ending[0]), "week")
    if (kind := _TYPE_OF.fullmatch(whole)) is not None and whole not in lexicon():  # of a budget
        yield Meaning("text", Evidence("text", "header", kind["first"] or kind["last"] or whole))
    if (active := _ACTIVE.fullmatch(whole)) is not None:
        yield Meaning("stock", Evidence("stock", "header", active[0]), "stock")
    if is_of_postbacks(whole):
        yield Meaning("identifier", Evidence("identifier", "header", whole))


def _money_by_unit(header: str, whole: str) -> Iterator[Meaning]:
    """Yield that a header is of money by the currency beside its words, or by micros, which nothing but money is in."""
    codes = _currencies_beside(header)
    bare = folded_header(BRACKETS.sub(" ", header))
    is_named = any(letter.isalpha() for letter in bare) and _ACRONYM.fullmatch(header.split("(")[0].strip()) is None
    is_named &= "per" not in whole.split() and not currencies_of_code(header)
    if codes and is_named:
        yield _amount_in((), codes)
    if (micros := _MICROS.search(whole)) is not None:
        yield Meaning("amount", Evidence("amount", "header", micros[0]), "unnamed")


def _are_counts(found: Sequence[tuple[Concept, str, int]]) -> bool:
    return bool(found) and all(concept.role in ("count", "modifier") for concept, _, _ in found)


def _amount_in(found: Sequence[tuple[Concept, str, int]], codes: Currencies) -> Meaning:
    """Return the meaning of an amount by its first word that is *found*, or by its currency alone."""
    known = next(((concept.name, phrase) for concept, phrase, _ in found if concept.role == "amount"), None)
    name, said = known or ("unnamed", " or ".join(sorted(codes)[:2]))
    return Meaning("amount", Evidence("amount", "header", said), name)


def _currencies_beside(header: str) -> Currencies | None:
    """Return the currencies in brackets, behind a comma or as a sign in a header, None for none."""
    parts = [*BRACKETS.findall(header), *header.split(",")[1:], *_SIGNS.findall(header)]
    return next((said for part in parts if (said := currencies_in(part.strip(), is_header=True))), None)


def is_explained(behind: str, phrase: str, role: str) -> bool:
    """Return whether what stands *behind* the words of an amount or a count leaves it one: a cost center is no cost.

    English, Chinese, Japanese and Korean say last what a thing is. So a word there that nobody knows makes something
    else of the measure, and its column is asked about.
    """
    behind = behind.strip()
    if not behind:
        return True
    if is_eastern(phrase):
        behind = behind.replace(" ", "")
        for known, text, _ in concepts_in(behind):
            behind = behind.replace(text, "", 1) if known.role in MEASURES | {"modifier"} else behind
        behind = (_TAILS if role == "amount" else _COUNT_TAILS).sub("", behind)
        return not is_eastern(behind)
    if phrase.split()[-1].removesuffix("s") not in _SAYS_LAST or _COMPLEMENT.match(behind):
        return True
    if any(canonical_name(behind, kind) for kind in KINDS):
        return True
    known_words = {
        word for concept, text, _ in concepts_in(behind) if concept.role in _EXPLAINING for word in text.split()
    }
    return all(
        word in known_words
        or (word in _BEHIND_MEASURES and (role == "amount" or not word.startswith("value")))
        or any(letter.isdigit() or not letter.isalpha() for letter in word)
        or bool(currencies_of_code(word))
        or TOTAL.fullmatch(word) is not None
        or any(canonical_name(word, kind) for kind in KINDS)
        for word in behind.split()
    )


def _measures_and_keys(folded: str) -> list[tuple[Concept, str, int]]:
    return [(concept, phrase, at) for concept, phrase, at in concepts_in(folded) if concept.role != "modifier"]


def _with_values(outer: str, found: list[tuple[Concept, str, int]], inner: str) -> list[tuple[Concept, str, int]]:
    """Return what is *found* in a header with a word for value instead of what it counts the value of.

    What conversions are worth is income, and what purchases are worth an amount. A rate has both, on its two sides. A
    word for value that is alone in the brackets behind may mean the number or the money.
    """
    if is_value(inner) and _are_counts(found) and value_in(f"{inner} of {outer}"):
        return []
    words = value_in(outer)
    per = _PER.search(outer)
    if per is not None and per[0] in _ONLY_OF_MANY:
        per = None

    def is_beside(at: int) -> bool:
        return per is None or words is None or (at >= per.end()) == (words.at >= per.end())

    beside = [concept for concept, _, at in found if is_beside(at)]
    amounts = {concept.name for concept in beside if concept.role in ("amount", "price")}
    if words is None or any(concept.role == "rate" for concept in beside) or amounts - _WORTH:
        return found
    counts = [one for one in found if one[0].role == "count" and is_beside(one[2])]
    if not words.thing and not counts:
        return found
    others = [one for one in found if one not in counts]
    is_known = "income" in amounts
    is_worth = words.thing and (counts or per is None or words.at < per.start() or per[0] == "basina")
    if not is_known and is_worth:
        worth = Concept("income" if words.thing == "conversions" else "money", "amount")
        others = [one for one in others if not (one[0].name == "money" and is_beside(one[2]))]
        others.append((worth, words.phrase, words.at))
    return sorted(others, key=lambda one: one[2])


def _without_pricing(header: str, outer: str, found: list[tuple[Concept, str, int]]) -> list[tuple[Concept, str, int]]:
    """Return what is *found* in a header, without how ads are paid where this only says which money: CPM revenue.

    Money is what is named last, or first before a word such as of: Receita de CPM. A cost alone beside one of them may
    be of one click, and an eCPM is what was earned with a thousand.
    """
    models = [(phrase, at) for concept, phrase, at in found if concept.role == "rate" and _PRICING.fullmatch(phrase)]
    rates = [phrase for concept, phrase, _ in found if concept.role == "rate"]
    money = [one for one in found if one[0].role == "amount" and one[0].name in ("cost", "income")]
    if not models or len(rates) > len(models) or not money or _EFFECTIVE.search(header):
        return found
    _, phrase, at = money[0]
    if len(models) == 1 and _UNIT_COST.fullmatch(phrase) and not _OF_ALL.search(outer):
        return found
    first, (other, last) = models[0][1], models[-1]
    is_last = at > last and not re.search(rf"{_OF_MODELS.pattern}|/", outer[last + len(other) : at])
    is_first = at < first and (len(models) > 1 or _OF_MODELS.search(outer, at + len(phrase), first) is not None)
    is_first &= "/" not in outer[at:first]
    return [one for one in found if one[1:] not in models] if is_last or is_first else found


def _running_totals(found: Sequence[tuple[Concept, str, int]]) -> Iterator[Meaning]:
    """Yield the running total that a header names beside a measure, whatever their order; rates are none."""
    phrase = next((phrase for concept, phrase, _ in found if concept.role == "cumulative"), None)
    if phrase is not None and all(concept.role != "rate" for concept, _, _ in found):
        measure = next((concept.name for concept, _, _ in found if concept.role in ("amount", "count")), "cumulative")
        yield Meaning("cumulative", Evidence("cumulative", "header", phrase), measure)


def _rates(header: str, outer: str, found: Sequence[tuple[Concept, str, int]], inner: str) -> Iterator[Meaning]:
    """Yield the rates that a header names: by a word, or as a quotient of two measures."""
    rates = [(concept, phrase) for concept, phrase, _ in found if concept.role == "rate"]
    if (change := _RATE_OF_CHANGE.search(f"{outer} {inner}")) or _PERCENT.search(header):
        rates.append((lexicon()["average"], change[0] if change else "%"))
    if (eastern := _RATE_AT_END.search(outer)) is not None:  # 수수료율
        rates.append((lexicon()["average"], eastern[0]))
    if (mean := _MEAN.search(outer)) is not None:
        rates.append((lexicon()["average"], mean[0]))
    counts = [concept.name for concept, _, _ in found if concept.role == "count"]
    if counts and _EASTERN_PER.search(outer.replace(" ", "")):
        amounts = [concept.name for concept, _, _ in found if concept.role == "amount"]
        yield Meaning("rate", Evidence("rate", "header", header), "", (amounts[0] if amounts else "", counts[0], 1.0))
        return
    per = _PER.search(outer)
    if per:
        before = [concept for concept, _, at in found if at < per.start() and concept.role in MEASURES]
        after = [concept for concept, _, at in found if at >= per.end() and concept.role in MEASURES]
        behind = outer[per.end() :].strip()
        is_by_other = per[0] == "/" and [concept.name for concept in before] == ["cost"] and _is_counted(behind)
        is_sure = per[0] in _SURE_PER and bool(behind or per[0] != "moi")  # at the end, it is the word for new
        is_sure |= per[0].endswith(("nkent", "nkenti", "あたり", "当たり")) and not _EASTERN_TIME.search(per[0])
        is_of_many = _THOUSAND.match(behind) is not None
        is_sure |= is_of_many and bool(before)
        if per[0] in _BETWEEN_AMOUNT_AND_THING and not rates:
            thing = outer[: per.start()].strip() if per[0] == "basina" else behind
            money = after if per[0] == "basina" else before
            is_named = any(concept.role in KEYS | TIMES for concept, _, _ in concepts_in(thing))
            is_sure |= bool(thing and not is_named and (money or per[0] == "basina"))
        is_between = bool(before and after) and per[0] not in _ONLY_OF_MANY
        if per[0] == "/" and {concept.name for concept in (*before, *after)} == {"charge"}:
            is_between = False  # VAT/Tax: two words for one amount
        if is_sure or is_between or is_by_other:
            factor = 1000.0 if is_of_many or _THOUSAND.search(behind) else 1.0
            names = (before[0].name if before else "", after[0].name if after else "")
            names = names[::-1] if per[0] == "basina" else names
            yield Meaning("rate", Evidence("rate", "header", header), "", (*names, factor))
            return
    if not rates and re.search(r"\bper\b", inner) and concepts_in(inner):
        yield Meaning("rate", Evidence("rate", "header", header), "")
    for concept, phrase in sorted(rates, key=lambda rate: rate[0].of is None):
        yield Meaning("rate", Evidence("rate", "header", phrase), concept.name, concept.of)


def _is_counted(behind: str) -> bool:
    """Return whether what stands behind a cost and a slash may be a thing that it is for: neither money nor a time."""
    known = concepts_in(behind)
    return bool(behind) and not known and not currencies_of_code(behind) and behind.isalpha()


def units_among(headers: Iterable[str]) -> str | None:
    """Return the header of the units sold, whose price another column may have."""
    return next((header for header in headers if _UNITS.search(folded_header(header))), None)


def platform_beside(app: str) -> str | None:
    """Return the platform in the name of an app: in brackets, or at one of its ends; None for none, or two."""
    match = _BESIDE_APP.fullmatch(app.strip())
    if len({canonical_name(word, "platform") for word in _PLATFORM_WORD.findall(app)}) > 1:  # iOS & Android
        return None
    said = [part for inner in BRACKETS.findall(app) for part in re.split(r"[,/|;]", inner)]
    said += [part for part in (match.groups() if match else ()) if part]
    platforms = {platform for part in said if (platform := canonical_name(part.strip(), "platform")) is not None}
    return min(platforms) if len(platforms) == 1 else None


def is_of_any_kind(header: str) -> bool:
    """Return whether a header counts what another column names: results, conversions, events, units."""
    counted = [(known.name, phrase) for known, phrase, _ in concepts_in(folded_header(header)) if known.role == "count"]
    are_any = all(name in ("conversions", "events") and not _ONE_KIND.search(phrase) for name, phrase in counted)
    return are_any and bool(counted)


def is_no_money(header: str) -> bool:
    """Return whether a header names numbers that are no money, such as ratings, followers, minutes and 件数."""
    folded = folded_header(BRACKETS.sub(" ", header))
    return topic_pattern("no_money").search(folded) is not None or _COUNT_AT_END.search(folded) is not None


def is_snapshot_header(header: str) -> bool:
    """Return whether a header says when something was looked at, such as scraped at."""
    return topic_pattern("snapshot").search(folded_header(header)) is not None


def is_at_end_of_day(header: str) -> bool:
    """Return whether the numbers below a header are of the last day, or of the end of each day."""
    return topic_pattern("end_of_day").search(folded_header(header)) is not None


def is_kind_header(header: str) -> bool:
    """Return whether a column of texts says what the counts beside it are of: an event, a goal, a type of results."""
    folded = folded_header(header)
    found = [(known.name, phrase) for known, phrase, _ in concepts_in(folded)]
    is_counted = any(name in ("events", "conversions") and phrase == folded for name, phrase in found)  # Event
    is_counted |= _TYPE_OF.fullmatch(folded) is not None and any(name in _OF_KINDS for name, _ in found)  # Install type
    return is_counted or any(name == "kind" for name, _ in found) or folded in _GOALS


def is_exchange(header: str) -> tuple[str, str] | None:
    """Return the two currencies that a header compares: usd_per_eur, EUR/USD."""
    match = _EXCHANGE.fullmatch(header.strip())
    codes = (match[1].upper(), match[2].upper()) if match else ("", "")
    return codes if codes[0] != codes[1] and all(code in USD_PER_UNIT for code in codes) else None


@cache
def lexicon() -> dict[str, Concept]:
    """Return the concept of each folded phrase."""
    phrases: dict[str, Concept] = {}
    for name, table in LEXICON.items():
        if table["role"] == "row":
            continue
        concept = Concept(name, table["role"], tuple(table["of"]) if "of" in table else None)
        for word in table["words"]:
            phrases.setdefault(folded_header(word), concept)
    return phrases


@cache
def _phrases() -> re.Pattern[str]:
    return any_phrase(lexicon())


@lru_cache(maxsize=4096)  # of one file each header is looked at by several questions
def concepts_in(folded: str) -> tuple[tuple[Concept, str, int], ...]:
    """Return the concepts in a folded header with their phrase and place, the longest phrase where several fit."""
    found, begins = list[tuple[Concept, str, int]](), 0
    while (match := _phrases().search(folded, begins)) is not None:
        if is_eastern(match[0]):  # of phrases that overlap the last one: 用户 in 付费用户, and not 费用
            behind = (_phrases().match(folded, at) for at in range(match.start() + 1, match.end()))
            match = next((later for later in behind if later and later.end() > match.end()), match)
        phrase = match[0] if match[0] in lexicon() else match[0].removesuffix("s")
        found.append((lexicon()[phrase], match[0], match.start()))
        begins = match.end()
    return tuple(found)


@suggests_names
@dataclass(frozen=True)
class Vendor:
    """The format of a vendor's files, a row of `vendors.toml`."""

    key: str
    table: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the format."""
        return str(self.table["name"])

    @property
    def recognised_by(self) -> tuple[str, ...]:
        """What a file must have: headers, with alternatives by |, and what tells them from the files of others."""
        table = self.table
        line = ", or the title of such a report above them" if "only_above" in table else ""
        return (
            *table["needs"],
            *([f"one of {table['only']}{line}"] if "only" in table else []),
            *([f"a line above them like {table['above']}"] if "above" in table else []),
            *([f"a header like {table['wide']}"] if "wide" in table else []),
        )

    def measure(self, above: Sequence[str]) -> str | None:
        """Return what the columns measure, where the format says it in a line above the header."""
        matches = (re.fullmatch(self.table["above"], line) for line in above if "above" in self.table)
        return next((match[1] for match in matches if match), None)

    def is_only(self, headers: Sequence[str], above: Sequence[str]) -> bool:
        """Return whether no other vendor has these headers and lines above them, as far as the format says."""
        table = self.table
        if "wide" in table and not any(re.fullmatch(table["wide"], header) for header in headers):
            return False
        if "only" not in table:
            return True
        return any(_is_header(header, table["only"]) for header in headers) or any(
            re.fullmatch(table["only_above"], line.strip()) for line in above
        )

    def meaning_of(self, header: str) -> Meaning | None:
        """Return what the format says of a column, if anything."""
        for names, said in self.table.get("columns", {}).items():
            if _is_header(header, names):
                details: Mapping[str, Any] = {"role": said} if isinstance(said, str) else said
                concept = details.get("concept", "")
                if not concept:
                    named = concepts_in(folded_header(BRACKETS.sub(" ", header)))
                    concept = next((found.name for found, _, _ in named if found.role == details["role"]), "")
                return Meaning(details["role"], Evidence(details["role"], self.name, header), concept, None, details)
        return None


@cache
def vendors() -> tuple[Vendor, ...]:
    """Return all formats."""
    tables = tomllib.loads(_HERE.with_name("vendors.toml").read_text(encoding="utf-8"))
    return tuple(Vendor(key, table) for key, table in tables.items())


def vendor_of(headers: Sequence[str], above: Sequence[str] = ()) -> Vendor | None:
    """Return the format whose needed headers are all there, the one with most columns if several are.

    *above* are the lines above the header; some formats need one of them.
    """
    found = [
        vendor
        for vendor in vendors()
        if all(any(_is_header(header, names) for header in headers) for names in vendor.table["needs"])
        and ("above" not in vendor.table or vendor.measure(above) is not None)
        and vendor.is_only(headers, above)
    ]
    known = {vendor.key: sum(vendor.meaning_of(header) is not None for header in headers) for vendor in found}
    return max(found, key=lambda vendor: (known[vendor.key], len(vendor.table["needs"])), default=None)


def find_header(names: str, headers: Sequence[str]) -> str | None:
    """Return the header that one of *names*, separated by |, calls; in brackets `(*)` stands for anything."""
    return next((header for name in names.split("|") for header in headers if _is_header(header, name)), None)


@cache
def _is_header(header: str, names: str) -> bool:
    folded = " ".join(header.casefold().split())
    for name in names.split("|"):
        pattern = re.escape(" ".join(name.casefold().split())).replace(r"\*", ".+")
        if re.fullmatch(pattern, folded):
            return True
    return False


def formats(name: str | None = None) -> DataFrame:
    """Return the formats of vendors that `gl.read_table` knows, a row for each column whose meaning they say.

        outside_data.formats("Google Ads")

    Columns that a format does not list are understood by their header and cells.

    Args:
        name: one format, such as "Google Ads".

    Columns: vendor (category), recognised_by (str, headers that are all there, alternatives by |, and what tells them
    from files of other vendors), column (str), is
    (str, what becomes of it), paid_to (str, who is paid in every row, "" where a column says it), days (str, the time
    zone of its days, "" where it is not known).

    Raises:
        BadQuery: there is no such format.
    """
    names = [vendor.name for vendor in vendors()]
    if name is not None and name not in names:
        raise BadQuery("name", name, "is not a format", names)
    rows = []
    for vendor in vendors():
        shared = {
            "vendor": vendor.name,
            "recognised_by": "; ".join(vendor.recognised_by),
            "paid_to": vendor.table.get("publisher", ""),
            "days": vendor.table.get("zone", ""),
        }
        columns = vendor.table.get("columns", {}) | (
            {"all others": "exchange_rate"} if {"rates_of", "quotes"} & vendor.table.keys() else {}
        )
        rows += [shared | {"column": header, "is": _becomes(stated)} for header, stated in columns.items()]
    frame = DataFrame(rows)[["vendor", "recognised_by", "column", "is", "paid_to", "days"]]
    chosen = frame if name is None else frame[frame["vendor"] == name]
    return chosen.astype({"vendor": "category"}).reset_index(drop=True)


def _becomes(stated: str | Mapping[str, Any]) -> str:
    """Return the role of a column with what else a format says of it."""
    if isinstance(stated, str):
        return stated
    words = [str(stated.get("concept") or stated["role"])]
    words += [f"in {stated['currency']}"] if stated.get("currency", "?") != "?" else []
    if "of" in stated:
        above, below, *factor = stated["of"]
        words.append(f"{f'{factor[0]:,} * ' if factor and factor[0] != 1 else ''}{above} / {below}")
    words += [f"weighted by {stated['weight']}"] if "weight" in stated else []
    words += [f"times {stated['scale']:g}"] if "scale" in stated else []
    words += ["negative for refunds"] if "negative" in stated else []
    return ", ".join(words)


def summands_of(
    meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], roles: Collection[str] = SUMMANDS
) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of the columns of *roles*, by default those that can be added up, by name."""
    return {name: cells[name].likely_numbers for name, meaning in meanings.items() if meaning.role in roles}


def groups_of(codes: Mapping[str, NDArray[Any]], by: Sequence[str], rows: int) -> NDArray[np.int64]:
    """Return the number of the group of each of *rows*, the same for rows that have the same codes in *by*."""
    if not by:
        return np.zeros(rows, dtype="int64")
    table = DataFrame({name: codes[name] for name in by})
    groups: NDArray[np.int64] = np.asarray(table.groupby(list(by), sort=False).ngroup(), dtype="int64")
    return groups
