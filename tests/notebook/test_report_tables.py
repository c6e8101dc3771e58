"""Tables of a report: readable headings, units and numbers, no index, a line where rows are left out."""

from __future__ import annotations

import re

import pandas as pd
from pandas import DataFrame

from gamelens.notebook.report_tables import MOST_ROWS, table_html
from support.hostile_names import NAMES


def cells(frame: DataFrame, tag: str = "td") -> list[str]:
    """Return the texts of the cells of a table, without markup."""
    found = re.findall(rf"<{tag}[ >].*?</{tag}>", table_html(frame), re.DOTALL)
    return [re.sub("<[^>]+>", "", cell) for cell in found]


def test_headings_are_words_with_their_unit() -> None:
    """Columns have readable names, and the unit below."""
    assert cells(DataFrame({"country_code": ["US"], "ecpm": [1.0]}), "th") == [
        "Country",
        "eCPM USD per 1,000 impressions",
    ]


def test_a_title_that_is_a_column_keeps_its_capitals() -> None:
    """The overview of a health board has a column for each game."""
    assert cells(DataFrame({"number": ["Sessions"], "Tile Harbor": ["+1%"]}), "th") == ["Number", "Tile Harbor"]


def test_a_unit_that_the_name_tells_is_not_said_twice() -> None:
    """A share of the change is one already."""
    assert cells(DataFrame({"share_of_change": [0.5]}), "th") == ["Share of the change"]


def test_a_day_stays_on_its_line() -> None:
    """Text that is a day has a class of its own, other text has none."""
    assert '<td class="day">2026-11-20</td><td>ok</td>' in table_html(DataFrame({"day": ["2026-11-20"], "is": ["ok"]}))


def test_numbers_are_written_in_their_unit() -> None:
    """Money has cents, shares are percentages, counts are whole, a tiny p-value is a bound, a null says so."""
    frame = DataFrame(
        {"ad_revenue": [1234.567], "revenue_share": [0.1234], "impressions": [98765], "p_value": [0.00001]}
    )
    assert cells(frame) == ["&#36;1,235", "12.3%", "98,765", "&lt; 0.001"]
    assert cells(DataFrame({"ecpm": [None]}, dtype="float64")) == ["n/a"]


def test_low_and_high_are_one_column_in_the_unit_of_the_number() -> None:
    """Two bounds become an interval, written like the number before them."""
    frame = DataFrame({"retention": [0.4], "low": [0.385], "high": [0.415]})
    assert cells(frame, "th")[1:] == ["Interval"]
    assert cells(frame) == ["40.0%", "38.5% to 41.5%"]


def test_players_who_returned_are_counted() -> None:
    """Beside installs, `returned` is players, not a share."""
    frame = DataFrame({"age": [1], "installs": [400], "returned": [137], "retention": [0.3425]})
    assert cells(frame) == ["1", "400", "137", "34.2%"]


def test_amounts_of_a_decomposition_are_money() -> None:
    """Beside volume, mix and price a change is dollars, elsewhere a percentage."""
    frame = DataFrame({"before": [1.0], "change": [0.5], "volume": [0.5], "mix": [0.0], "price": [0.0]})
    assert cells(frame)[1] == "&#36;0.50"
    assert cells(frame[["change"]]) == ["50.0%"]


def test_an_index_is_shown_only_if_it_has_a_name() -> None:
    """Row numbers are left out, days are not."""
    frame = DataFrame({"installs": [7]}, index=[41])
    assert cells(frame) == ["7"]
    assert cells(frame.rename_axis("age")) == ["41", "7"]


def test_a_long_table_says_how_much_is_left_out() -> None:
    """After `MOST_ROWS` rows a line says how many there are."""
    assert f"The first {MOST_ROWS} of 84 rows." in table_html(DataFrame({"installs": range(84)}))
    assert "The first" not in table_html(DataFrame({"installs": range(MOST_ROWS)}))


def test_days_nulls_and_truths_are_words() -> None:
    """A day is 20 Nov 2026, a missing name (unknown), a truth yes or no."""
    frame = DataFrame({"timestamp": pd.to_datetime(["2026-11-20"], utc=True), "is_chosen": [True]})
    frame["network"] = pd.Categorical([None], categories=["AdMob"])
    assert cells(frame) == ["20 Nov 2026", "yes", "(unknown)"]


def test_hostile_names_stay_text() -> None:
    """Names in cells and headings are escaped."""
    written = table_html(DataFrame({NAMES["tag"]: [NAMES["tag"]]}))
    assert "<img" not in written
    assert "<script" not in written


def test_a_table_can_be_reached_by_keyboard() -> None:
    """What may scroll takes the focus and has a name; headings say what they head."""
    written = table_html(DataFrame({"game": ["Tile"]}))
    assert 'role="group" aria-label="Table: Game" tabindex="0"' in written
    assert '<th scope="col"' in written
