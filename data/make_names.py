"""Program that makes the tables of country names and month names from Unicode's CLDR, as Babel ships it.

Run it as `python data/make_names.py` where Babel is installed. The package itself needs no Babel.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from babel import Locale, localedata
from babel.core import get_global

from gamelens.analysis.ads.canonical_names import folded_country
from gamelens.analysis.files.date_parsing import folded_word

ANALYSIS = Path(__file__).parents[1] / "src/gamelens/analysis"
LANGUAGES = """
en de fr es pt it nl sv da nb fi pl cs sk hu ro bg el tr ru uk ja zh ko vi id th ar he hi ms ca hr sr lt lv et sl
"""
PREFIXES = {"he": "ב"}
"""What dates of a language have before the month, and behind the weekday, as if it were part of it."""
SUFFIXES = {"th": "ที่"}
BETWEEN = """
of the th st nd rd de del le d er den der dne г р r roku gada m a ngay nam ค ศ พ tanggal tahun
"""
"""What else stands in dates, folded: articles, endings of numbers, words for day and year."""
THREE_LETTERS = {"ru": {9: "сен", 11: "ноя"}}
THREE_LETTERS |= {"uk": {4: "кві", 5: "тра", 6: "чер", 8: "сер", 10: "жов", 11: "лис", 12: "гру"}}
"""Months as people and pivot tables abbreviate them, where the CLDR has four letters."""
OTHER_NAMES = """
AE UAE; BN Brunei Darussalam; BO Bolivia, Plurinational State of; BQ Caribbean Netherlands; CD DR Congo;
CD Congo, the Democratic Republic of the; CD Democratic Republic of the Congo; CG Congo; CG Republic of the Congo;
CI Ivory Coast; CV Cabo Verde; CZ Czech Republic; FK Falkland Islands (Malvinas); FM Micronesia, Federated States of;
GB UK; GB Britain; GB Great Britain; GB England; HK Hong Kong; HK Hong Kong SAR; HK Hong Kong SAR China;
IR Iran, Islamic Republic of; KP Korea, Democratic People's Republic of; KR Korea; KR Korea, Republic of;
KR Republic of Korea; KR Korea, South; LA Lao People's Democratic Republic; LA Lao PDR; MD Moldova, Republic of;
MK Macedonia; MK Macedonia, the former Yugoslav Republic of; MM Burma; MO Macau; MO Macau SAR; NL Holland;
PS Palestinian Territory, Occupied; PS State of Palestine; RU Russian Federation; SY Syrian Arab Republic;
SZ Swaziland; TL East Timor; TR Turkey; TW Taiwan, Province of China; TW Taiwan, China; TZ Tanzania, United Republic of;
US USA; US U.S.; US United States of America; US America; VA Holy See; VE Venezuela, Bolivarian Republic of;
VG Virgin Islands, British; VI Virgin Islands, U.S.; VN Viet Nam; XK Kosovo
"""
USUAL_NAMES = """
AE EAU; AE VAE; AE BAE; AE ОАЭ; AE ZEA; AE Объединенные Арабские Эмираты; AE Объединённые Арабские Эмираты;
AE الإمارات; AE Emiratos Árabes; AE Emirados Árabes; AE Emirati Arabi; AE Émirats arabes unis; AE Emirate;
AE Emirates; AE 阿联酋; BA Bosnia; BA Bosnien; BA Bosnie; BA Босния; BA Bośnia; BY Белоруссия;
BY Weißrussland; BY Weissrussland; BY Bielorrusia; BY Bielorrússia; BY Biélorussie; BY Bielorussia;
BY White Russia; BY Belorussia; CD Демократическая Республика Конго; CD ДР Конго; CD RD Congo; CD RDC;
CI Elfenbeinküste; CI Wybrzeże Kości Słoniowej; CI Costa de Marfil; CI Costa do Marfim; CI Costa d'Avorio;
CI Fildişi Sahili; CI Ivoorkust; CN Mainland China; CN China (mainland); CN 中国大陆; CN 中國大陸; CN PRC;
CN VR China; CN Volksrepublik China; CN 中国内地; CZ Чешская Республика; CZ Česká republika; CZ Czechia;
CZ Tschechische Republik; CZ República Checa; CZ Republika Czeska; GB Großbritannien; GB Grossbritannien;
GB Gran Bretaña; GB Inglaterra; GB Grã-Bretanha; GB Anglia; GB Gran Bretagna; GB İngiltere; GB Angleterre;
GB Grande-Bretagne; GB Inghilterra; GB Engeland; GB Groot-Brittannië; GB VK; GB Storbritannien; GB Англия;
GB Anglie; GB Velká Británie; GB إنجلترا; GB بريطانيا; GB イギリス; GB 大不列颠; HK Гонконг; HK Hongkong;
HK 香港; HK ホンコン; MO 澳门; MO 澳門; MO マカオ;
KG Киргизия; KG Kirgisien; KP Северная Корея; KP КНДР; KP Nordkorea; KP Coreia do Norte; KR Южная Корея;
KR Республика Корея; KR Coreia; KR Corea; KR 南韓; KR 南韩; KR Güney Kore; KR 韩国; KR 韓国; KR 한국;
MD Молдавия; MD Moldawien; MD Moldau; MK Mazedonien; MK Северная Македония; MK Македония; MK Macédoine;
MM Birma; MM Birmania; MM Birmanie; MM Бирма; NL Голландия; NL Holanda; NL Hollande; NL Hollanda; NL Olanda;
NL Holandia; NL オランダ; NL 荷兰; PS Palestine; PS Palästina; PS Palestina; PS Палестина; PS فلسطين; RU РФ;
RU Российская Федерация; RU Russische Föderation; RU Federación Rusa; RU Federación de Rusia; SA KSA;
SA السعودية; SA Saudi; SA Саудовская Аравия; SA Arabia Saudí; SA Arabie Saoudite; SY Сирия; TT Trinidad;
TT Trinidad y Tobago; TT Trinidad und Tobago; TW 臺灣; TW 台湾地区; US США; US EE.UU.; US EE. UU.; US EEUU;
US EUA; US E.U.A.; US ABD; US A.B.D.; US Amerika; US Vereinigte Staaten von Amerika;
US Estados Unidos de América; US Estados Unidos da América; US États-Unis d'Amérique; US Etats-Unis;
US Stati Uniti d'America; US Stany Zjednoczone Ameryki; US Spojené státy americké;
US Соединенные Штаты Америки; US Соединённые Штаты Америки; US Америка; US 美國; US 美利坚合众国; US アメリカ;
US アメリカ合衆国; US 米国; US 미합중국; US أمريكا; US ΗΠΑ; US Сполучені Штати Америки; US VS;
US Verenigde Staten van Amerika; KZ Республика Казахстан; VN Vietnam; VN Вьетнам; ZA RSA; ZA ЮАР;
ZA Südafrika; ZA Zuid-Afrika
"""
"""What people of the languages of exports call countries, where CLDR has a longer name."""


def country_names() -> dict[str, str]:
    """Return the two letters of each folded name of a country, in any language that has one for it alone."""
    aliases: Mapping[str, list[str]] = get_global("territory_aliases")
    codes = {code for code in Locale("en").territories if len(code) == 2 and code.isalpha()} - {
        *["EU", "EZ", "UN", "QO", "ZZ", "XA", "XB"]
    }
    codes -= {code for code in codes if code in aliases}
    found: dict[str, set[str]] = defaultdict(set)
    for identifier in localedata.locale_identifiers():
        for code, name in Locale.parse(identifier).territories.items():
            if code in codes:
                for spelling in spellings(name):
                    found[folded_country(spelling)].add(code)
    names = {name: min(of) for name, of in found.items() if len(of) == 1 and name}
    others = [name_and_code(entry) for entry in f"{USUAL_NAMES};{OTHER_NAMES}".split(";")]
    names |= {folded_country(name): code for name, code in others}
    names |= {
        alias.casefold(): of[0]
        for alias, of in aliases.items()
        if len(alias) == 3 and alias.isalpha() and of[0] in codes
    }
    english = {folded_country(Locale("en").territories[code]): code for code in codes}
    return names | english | {"uk": "GB"} | {code.casefold(): code for code in codes}


def spellings(name: str) -> Iterable[str]:
    """Yield a name as it is, and with other usual signs."""
    yield name
    yield name.replace("&", "and")
    yield name.replace("St.", "Saint")
    yield name.partition("(")[0]


def name_and_code(entry: str) -> tuple[str, str]:
    """Return the name and the code of an entry."""
    code, _, name = entry.strip().partition(" ")
    return name, code


def words_of_dates() -> dict[str, object]:
    """Return the month of each of its names, by language where languages disagree, and the names of weekdays."""
    months: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    weekdays: dict[str, set[str]] = defaultdict(set)
    for language in LANGUAGES.split():
        locale = Locale(language)
        before, behind = PREFIXES.get(language, ""), SUFFIXES.get(language, "")
        for use in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, name in locale.months[use][width].items():
                    for spelling in {name, before + name}:
                        months[folded_word(spelling)][number].add(language)
                for name in locale.days[use][width].values():
                    weekdays[language] |= {folded_word(name), folded_word(name + behind)}
    months["sept"][9].add("en")
    for language, shorter in THREE_LETTERS.items():
        for number, name in shorter.items():
            months[folded_word(name)][number].add(language)
    known = {name: min(of) for name, of in months.items() if len(of) == 1 and not name.isdigit()}
    several = {
        name: {language: number for number, languages in of.items() for language in languages}
        for name, of in months.items()
        if len(of) > 1
    }
    unlike = sorted({language for of in several.values() for language in of})
    spoken = {
        language: weekdays[language] | {name for name, of in months.items() if language in set().union(*of.values())}
        for language in unlike
    }
    return {
        "months": known,
        "several": several,
        "languages": {language: sorted(names) for language, names in spoken.items()},
        "letters": {language: letters_of(Locale(language)) for language in unlike},
        "weekdays": sorted(set().union(*weekdays.values())),
        "between": BETWEEN.split(),
    }


def letters_of(locale: Locale) -> str:
    """Return the letters beyond ASCII in names of countries, languages, months and days."""
    names = [*locale.territories.values(), *locale.languages.values(), *locale.months["format"]["wide"].values()]
    text = "".join([*names, *locale.days["format"]["wide"].values()]).casefold()
    return "".join(sorted({letter for letter in text if letter.isalpha() and not letter.isascii()}))


if __name__ == "__main__":
    names = defaultdict[str, list[str]](list)
    for name, code in sorted(country_names().items()):
        names[code].append(name)
    lines = "\n".join("\t".join([code, *names[code]]) for code in sorted(names))
    (ANALYSIS / "ads/country_names.tsv.xz").write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
    text = json.dumps(words_of_dates(), sort_keys=True, ensure_ascii=False, indent=0)
    (ANALYSIS / "files/month_names.json").write_text(text + "\n", encoding="utf-8")
