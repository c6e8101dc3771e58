"""Texts that are no UTF-8: the encoding whose letters make words of one language comes first, others are not named."""

from __future__ import annotations

import pytest

from gamelens.analysis.files.text_encodings import likely_encodings

TEXTS = {
    "Turkish": "Fatura Tarihi;Tedarikçi;Hizmet Dönemi;Tutar;Durum\n01.11.2026;Google Ads;1-15 Kasım 2026;100;İptal\n"
    "02.11.2026;Meta;Ekim 2026;100;Ödendi\n03.11.2026;TikTok;Eylül;5;Bekliyor\nReklam ağı;şehir;İstanbul\n",
    "Polish": "Dzień;Kanał;Wydatki łącznie\n2026-11-01;Sieć reklamowa;100,00 zł\nŚroda;Październik;źródło\n",
    "Czech": "Den;Síť;Částka\n2026-11-01;Reklamní síť;100 Kč\nříjen;září;Měna účtu;útrata\n",
    "Hungarian": "Dátum;Hálózat;Költség\n2026-11-01;Közvetítő;100\nösszeg;október;időszak;Fő\n",
    "German": "Tag;Netzwerk;Währung\n2026-11-01;Köln;Größe;für;Übersicht;März\n",
    "French": "Jour;Réseau;Coût\n2026-11-01;Dépenses;août;campagne d’été;français;à\n",
    "Spanish": "Día;Campaña;Inversión\n2026-11-01;España;México;Año;instalación\n",
    "Portuguese": "Dia;Campanha;Instalações\n2026-11-01;São Paulo;Investimento;março;não;país\n",
    "Danish": "Dag;Netværk;Beløb\n2026-11-01;København;måned;forår;økonomi\n",
    "Lithuanian": "Diena;Tinklas;Išlaidos\n2026-11-01;Lietuvių;rugsėjis;šalis;žaidimas;mėnuo;įdiegimų skaičius\n",
    "Latvian": "Diena;Tīkls;Izmaksas\n2026-11-01;Reklāma;mēnesis;septembrī;valsts nosaukums ļoti;Rīga;šķirne\n",
    "Greek": "Ημερομηνία;Δίκτυο;Κόστος\n2026-11-01;Διαφήμιση;Νοέμβριος;Ελλάδα\n",
    "Russian": "Дата;Сеть;Расход\n2026-11-01;Кампания;Октябрь;Россия\n",
    "Ukrainian": "Дата;Мережа;Витрати\n2026-11-01;Кампанія;Листопад;Україна;її\n",
    "Hebrew": "תאריך;רשת;עלות\n2026-11-01;קמפיין;מדינה\n",
    "Arabic": "التاريخ;الشبكة;المبلغ\n2026-11-01;حملة;السعودية\n",
    "Thai": "วันที่;เครือข่าย;ค่าใช้จ่าย\n2026-11-01;แคมเปญ;ประเทศไทย\n",
    "Korean": "날짜;매체;광고비\n2026-11-01;카카오모먼트 보고서;일자;전체 캠페인\n",
    "Chinese": "日期;渠道;消耗\n2026-11-01;广告平台;巨量引擎;费用\n",
    "Japanese": "日付;媒体;費用\n2026-11-01;メタ;広告;キャンペーン名\n",
}


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        *(("Turkish", name) for name in ("cp1254", "iso8859_9", "mac_turkish", "cp857")),
        *(("Polish", name) for name in ("cp1250", "iso8859_2", "cp852")),
        *(("Czech", name) for name in ("cp1250", "iso8859_2", "mac_latin2")),
        ("Hungarian", "cp1250"),
        *((name, "cp1252") for name in ("German", "French", "Spanish", "Portuguese", "Danish")),
        *((name, "mac_roman") for name in ("German", "French", "Spanish", "Portuguese", "Danish")),
        *((name, "cp850") for name in ("German", "Spanish", "Portuguese")),
        *((name, "cp1257") for name in ("Lithuanian", "Latvian")),
        *(("Greek", name) for name in ("cp1253", "iso8859_7", "mac_greek")),
        *(("Russian", name) for name in ("cp1251", "koi8_r", "iso8859_5", "mac_cyrillic", "cp866")),
        *(("Ukrainian", name) for name in ("cp1251", "koi8_u")),
        *(("Hebrew", name) for name in ("cp1255", "iso8859_8")),
        *(("Arabic", name) for name in ("cp1256", "iso8859_6")),
        ("Thai", "cp874"),
        ("Korean", "cp949"),
        ("Chinese", "gb18030"),
        ("Japanese", "cp932"),
        ("Japanese", "euc_jp"),
    ],
)
def test_the_first_encoding_reads_the_text(language: str, encoding: str) -> None:
    """Another name of it will do, if it reads the same."""
    text = TEXTS[language].replace("’", "'") if encoding in ("cp850", "mac_roman") else TEXTS[language]
    first, _ = likely_encodings(text.encode(encoding))[0]
    assert text.encode(encoding).decode(first) == text


@pytest.mark.parametrize(
    ("encoding", "changes"), [("cp949", "▲3;▼12;▲1;→\n"), ("cp932", "▲3;▼12;①;㈱\n"), ("gb18030", "▲3;▼12;①;→\n")]
)
def test_shapes_of_an_export_are_no_letters(encoding: str, changes: str) -> None:
    """A list of ranks has an arrow in most of its rows."""
    language = {"cp949": "Korean", "cp932": "Japanese", "gb18030": "Chinese"}[encoding]
    content = (TEXTS[language] + changes * 20).encode(encoding)
    assert [name for name, _ in likely_encodings(content)] == [encoding]


def test_turkish_is_not_read_as_central_european() -> None:
    """A word that is read wrong is not recognised: a cancelled invoice would count."""
    assert [name for name, _ in likely_encodings(TEXTS["Turkish"].encode("cp1254"))] == ["cp1254"]


def test_a_word_of_two_languages_leaves_both() -> None:
    """Espana and Espania with their accents are one byte: the reader sees both and chooses."""
    assert {*likely_encodings("España;1\n".encode("cp1252"))} >= {("cp1252", "España"), ("cp1250", "Espańa")}
