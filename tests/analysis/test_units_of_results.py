"""Each column of each analysis in a spreadsheet: dollars, percentages, counts, and plain numbers that stay plain."""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import openpyxl
import pandas as pd
import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens import analysis, raw_events
from gamelens.analysis import claims, outside_data
from gamelens.analysis.claims.findings import analyses
from gamelens.analysis.files.export_target import with_index
from gamelens.analysis.tidy_frames.frame_requirements import declared_requirements
from gamelens.analysis.tidy_frames.results import public_name
from gamelens.notebook.accessor import Accessor
from support.every_result import shared_results, simulated_lake
from support.tidy_frames import tidy_frame

MONEY: Final = {
    "ad_arpdau", "ad_revenue", "after", "arpdau", "arppu", "behind_effect", "blended_cpi", "cpi", "credited",
    "ecpm", "effect", "iap_arpdau", "iap_revenue", "ilrd_revenue", "ltv", "money", "revenue", "spend",
    "total_revenue", "worth",
}  # fmt: skip
SHARES: Final = {
    "ads_share", "chance", "chance_best", "change", "click_rate", "comparable_share", "expected_loss", "expected_share",
    "fail_rate", "fill_rate", "impression_share", "largest_day", "largest_share", "level_change", "lift",
    "like_for_like",
    "ltv_to_cpi", "minimal_effect", "minimal_lift", "of_previous", "payer_share", "quarter_lift", "relative",
    "retention", "revenue_share", "roas", "share", "share_of_change", "share_of_requests", "share_of_step_before",
    "sure_from", "unknown_share", "variance_kept", "weight",
}  # fmt: skip
PARTS: Final = {"before", "after", "change", "volume", "mix", "price"}
"""Money in a decomposition."""
AROUND: Final = {
    "ads.ecpm_index": "index", "decomposition.price_changes": "ratio", "experiments.compare": "difference",
    "experiments.compare_players": "difference", "experiments.next_steps": "difference",
    "experiments.probability_best": "value", "health.board": "expected", "health.flagged": "expected",
    "health.headline": "level_change", "health.levels": "change", "health.score_days": "expected",
    "outside_data.compare_with_weekdays": "usual", "outside_data.cost_per_install": "cpi",
    "outside_data.ltv_against_cpi": "ltv_to_cpi", "outside_data.payback_ages": "roas",
    "outside_data.rank_correlation": "correlation", "raw_events.funnel": "share",
    "raw_events.session_paths": "share", "outside_data.return_on_spend": "roas",
    "retention.average_curve": "retention", "retention.day_range": "retention", "retention.drift": "ratio",
    "retention.ltv": "ltv", "retention.project_retention": "retention",
}  # fmt: skip
"""The number of a result that its bounds low and high are around."""
SHARES_ALWAYS: Final = {
    *(("experiments.detectable_effects", "control_value"), ("experiments.probability_best", "value")),
    ("gl.retention_gap", "amount"),
}
OF_ROW: Final = {"value", "control_value", "before", "difference", "amount"}
NO_RESULTS: Final = {
    "ads.unlisted_names", "decomposition.dominant_effect", "decomposition.split_in_halves", "health.as_json",
    "health.unmatched_notes", "outside_data.roas", "totals.column_totals", "totals.in_periods",
}  # fmt: skip
"""Analyses that return names, numbers, a file's text, two frames, a query's frame, or a result beside a report."""


@pytest.fixture(scope="module")
def results() -> dict[str, DataFrame]:
    return shared_results()


def cells_of(results: dict[str, DataFrame], folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the columns of each result's sheet, with their cells below the title."""
    sheets = {name[-31:]: frame for name, frame in results.items()}
    assert len(sheets) == len(results)
    book = openpyxl.load_workbook(gl.export_excel(sheets, folder / "all.xlsx"))
    return {name: [*book[name[-31:]].iter_cols()] for name in results}


def number_of(column: str, columns: list[str], result: str) -> str:
    """Return the number that bounds are around, other columns as they are."""
    if not re.fullmatch(r"(\w+_)?(low|high)", column):
        return column
    own = re.sub(r"_?(low|high)$", "", column)
    return own if own in columns else "size" if "size" in columns else AROUND[result]


def kind_of(cell: Any) -> str:
    """Return what the format of a cell says its number is."""
    return "money" if "$" in cell.number_format else "share" if "%" in cell.number_format else "plain"


def shown(cell: Any) -> float:
    """Return the number that the format of a cell leaves of it."""
    if cell.number_format == "General":
        return abs(float(cell.value))
    places = len(re.sub(r"[^.]*\.?", "", cell.number_format, count=1).rstrip("%"))
    factor = 100 if "%" in cell.number_format else 1
    return round(abs(float(cell.value)) * factor, places)


def test_every_analysis_has_a_result(results: dict[str, DataFrame]) -> None:
    """A new analysis comes with a result here."""
    public = set()
    for topic in analysis.__all__:
        for function in vars(import_module(f"gamelens.analysis.{topic}")).values():
            if inspect.isfunction(function) and declared_requirements(function):
                public.add(public_name(function))
    assert public - NO_RESULTS == set(results)
    assert [name for name, frame in results.items() if frame.empty] == ["health.silent_games"]


def test_each_column_of_each_result_has_its_unit(results: dict[str, DataFrame], tmp_path: Path) -> None:
    """Money has dollars and a title that says so, shares are percentages, bounds as their number, the rest plain."""
    assert_units(results, tmp_path)


@pytest.mark.wide
def test_each_number_of_a_claim_has_its_unit(results: dict[str, DataFrame], tmp_path: Path) -> None:
    """What is compared has its own unit where that of the size is a ratio: a count of players is no percentage."""
    claimed = {name: claims.of(frame) for name, frame in results.items() if name in analyses()}
    assert {"ratio", "share", "USD"} <= {unit for frame in claimed.values() for unit in frame["unit"]}
    assert_units(claimed, tmp_path, are_claims=True)


@pytest.mark.wide
def test_each_column_of_an_analysis_of_events_has_its_unit(tmp_path: Path) -> None:
    """Those of a lake, two answers beside each other, and definitions of retention."""
    over = ("2026-10-25", "2026-11-03")
    with simulated_lake(tmp_path / "state") as lake:
        hours = raw_events.count_events(lake, over, every="day")
        answer = lake.query("revenue", over=over)
        reconciled = gl.reconcile(answer, lake, "revenue")
        results = {
            "raw_events.count_events": hours,
            "raw_events.active_players": raw_events.active_players(lake, over),
            "raw_events.session_paths": raw_events.session_paths(lake, over),
            "raw_events.funnel": raw_events.funnel(lake, ["user", "session_end"], over),
            "raw_events.player_money": raw_events.player_money(lake, over, days=2),
            "raw_events.reconcile": reconciled.causes,
            "gl.retention_definitions": gl.retention_definitions(lake, [1, 2], over=over, zone="Asia/Tokyo"),
            "gl.retention_gap": gl.retention_gap(
                lake, "calendar day UTC", "rolling 24 h", [1], over=over, zone="Asia/Tokyo"
            ),
        }
        claimed = {f"{name} said": claims.of(frame) for name, frame in results.items()}
    assert {*raw_events.__all__[1:]} <= {name.partition(".")[2] for name in results}
    assert_units(results, tmp_path)
    assert_units(claimed, tmp_path, are_claims=True)


def test_each_column_of_a_return_on_a_file_of_costs_has_its_unit(results: dict[str, DataFrame], tmp_path: Path) -> None:
    """`roas` returns its frame beside the report of the join."""
    cost = DataFrame({"Day": ["2026-11-01", "2026-11-01"], "Network": ["Meta", "X"], "Cost": ["$20", "$30"]})
    money = tidy_frame(
        "revenue",
        timestamp=["2026-11-01", "2026-11-01"],
        installed_on=["2026-11-01", "2026-11-01"],
        install_publisher=["Meta", "X"],
        revenue=[4.0, 5.0],
        ilrd_revenue=[1.0, 2.0],
    )
    on = {"timestamp": "Day", "install_publisher": "Network"}
    frame, _ = outside_data.roas(cost, money, on=on, currency="USD", ages=[0])
    assert_units({"outside_data.return_on_spend": frame}, tmp_path)


def written_as(kinds: set[str]) -> dict[str, set[str]]:
    """Return the forms in which the sentences of some kinds write each number, as `words.toml` has them."""
    words = tomllib.loads(files("gamelens.analysis.claims").joinpath("words.toml").read_text("utf-8"))
    forms: dict[str, set[str]] = {}
    for kind in kinds:
        templates = [*words[kind].values(), *words.get(words[kind].get("like", ""), {}).values()]
        for name, form in re.findall(r"{(\w+):(\w+?)(?:_range|_interval)?}", " ".join(templates)):
            forms.setdefault(name, set()).add(form)
    return {name: of for name, of in forms.items() if name != "size"}


def assert_units(results: dict[str, DataFrame], folder: Path, *, are_claims: bool = False) -> None:
    """Hold the cells of each column to the unit of its number, those of claims to what their sentences write."""
    cells = cells_of(results, folder)
    for result, frame in results.items():
        forms = written_as({*frame["kind"]}) if are_claims else {}
        table = with_index(frame)
        names = [str(name) for name in table.columns]
        is_matrix, is_decomposition = result == "retention.cohort_matrix", {*names} >= PARTS
        for name, (title, *below) in zip(names, cells[result], strict=True):
            if not pd.api.types.is_numeric_dtype(table[name if name in table else int(name)]):
                continue
            number = number_of(name, names, result)
            expected = "money" if number in MONEY or (is_decomposition and number in PARTS) else "plain"
            expected = "share" if (number in SHARES and expected == "plain") or is_matrix else expected
            if (result, number) in SHARES_ALWAYS:
                expected = "share"  # of players, in every row
            (form,) = forms.get(number, {""}) if len(forms.get(number, {""})) == 1 else ("",)
            expected = {"money": "money", "share": "share", "count": "plain"}.get(form, expected)
            of_row = OF_ROW | {name for name, own in forms.items() if own <= {"value", "difference"}}
            for row, cell in enumerate(below):
                if cell.value is None:
                    continue
                if "unit" in table and number in of_row and form not in ("money", "share"):
                    own = table.get("measured_in", table["unit"]).iloc[row]
                    unit = table["unit"].iloc[row] if pd.isna(own) else own
                    expected = {"USD": "money", "money": "money", "share": "share"}.get(
                        str(unit).partition(" ")[0], "plain"
                    )
                assert kind_of(cell) == expected, (result, name, cell.number_format)
                if number != name and cell.value:
                    assert shown(cell) > 0 or abs(cell.value) < 1e-4, (result, name, cell.number_format, cell.value)
            if expected == "money" and "unit" not in table:
                assert "USD" in title.value, (result, title.value)


def test_cells_of_a_spread_frame_have_the_unit_of_its_number(tmp_path: Path) -> None:
    """A column for each network is money, and what is computed beside them stays plain."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01"] * 2 + ["2026-11-02"] * 2,
        ilrd_network_name=["AdMob", "Unity"] * 2,
        ilrd_revenue=[1.5, 0.5, 2.0, 0.25],
    )
    wide = Accessor(frame).wide()
    rows = wide.assign(correlation=[-0.35, 0.2]), wide[["AdMob", "Unity"]].corr(), frame.assign(p_value=[0.49] * 4)
    path = gl.export_excel(dict(zip(("wide", "corr", "tidy"), rows, strict=True)), tmp_path / "x.xlsx")
    book = openpyxl.load_workbook(path)
    assert [cell.number_format for cell in book["wide"][2]] == ["yyyy-mm-dd", *["[$$-409]#,##0.00"] * 2, "General"]
    assert [cell.value for cell in book["wide"][1]][1] == "AdMob (USD)"
    assert [cell.number_format for cell in book["tidy"][2]][3] == "0.000"
