"""The provenance of a frame in words: the line under a figure and `explain()`."""

from __future__ import annotations

import pytest
from pandas import DataFrame

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)
from gamelens.receipt_text import explain, source_line
from gamelens.receipts import Provenance, QueryRecord, Receipt

REAL = Provenance(kind="real", url="https://metrics.example.com")
ORIGINS = [
    (
        Provenance(kind="sandbox", url="http://127.0.0.1:1", scenario="demo"),
        " · demo data (sandbox, scenario demo)",
        "Simulated: answered by the sandbox at http://127.0.0.1:1, populated with the scenario demo.",
    ),
    (
        Provenance(kind="sandbox", url="http://127.0.0.1:1"),
        " · demo data (sandbox)",
        "Simulated: answered by the sandbox at http://127.0.0.1:1.",
    ),
    (
        Provenance(kind="replay", url="recorded"),
        " · replay of recorded",
        "Replayed: answered from the recording recorded.",
    ),
    (
        Provenance(kind="replay", url="recorded", scenario="demo"),
        " · demo data (replay of recorded, scenario demo)",
        "Replayed: answered from the recording recorded of a sandbox, populated with the scenario demo.",
    ),
    (
        Provenance(kind="replay", url="q3", sources=(REAL,)),
        " · replay of q3, metrics.example.com",
        "Replayed: answered from the recording q3 of https://metrics.example.com.",
    ),
    (
        Provenance(kind="mixed", sources=(REAL, Provenance(kind="sandbox", scenario="demo"))),
        " · partly demo data (metrics.example.com and sandbox, scenario demo)",
        "Mixed: numbers of different sources, partly demo data (metrics.example.com and sandbox, scenario demo).",
    ),
    (
        REAL,
        " · metrics.example.com",
        "Answered by https://metrics.example.com.",
    ),
    (Provenance(), "", ""),
]


@pytest.mark.parametrize(("provenance", "source", "sentence"), ORIGINS)
def test_figures_and_explanations_name_the_origin(provenance: Provenance, source: str, sentence: str) -> None:
    """The source line and `explain()` say which kind of service answered."""
    receipt = Receipt(asked=QueryRecord(metric="revenue", over="last week"), version="0.1.0", provenance=provenance)
    frame = DataFrame({"revenue": [1.0]})
    frame.attrs["gamelens"] = receipt.to_json()
    assert source_line(frame) == f"Source: gamelens 0.1.0{source} · last week"
    assert explain(receipt).split("\n")[2:] == ([sentence] if sentence else [])


@pytest.mark.parametrize(("top", "words"), [(5, "top 5"), ({"country_code": 5}, "top 5 of country_code")])
def test_top_is_named_with_its_dimension(top: int | dict[str, int], words: str) -> None:
    """`top` of one dimension is told from `top` of whole rows."""
    receipt = Receipt(asked=QueryRecord(metric="revenue", over="last week", top=top), version="0.1.0", truncated=True)
    frame = DataFrame({"revenue": [1.0]})
    frame.attrs["gamelens"] = receipt.to_json()
    assert source_line(frame).endswith(f" · {words} only")
    assert f", {words}." in explain(Receipt.of(frame.attrs))


def test_a_scenario_stays_on_one_line() -> None:
    """A name from outside cannot break the source line."""
    frame = DataFrame({"revenue": [1.0]})
    frame.attrs["gamelens"] = Receipt(provenance=Provenance(kind="sandbox", scenario="a\nb\x00c")).to_json()
    assert source_line(frame) == "Source: gamelens · demo data (sandbox, scenario a b c)"


def test_the_accessor_returns_the_receipt() -> None:
    """`df.lens.receipt` is the struct, and an empty one for a frame without a receipt."""
    frame = DataFrame({"revenue": [1.0]})
    assert frame.lens.receipt == Receipt()
    frame.attrs["gamelens"] = {"requests": 2, "provenance": {"kind": "sandbox"}}
    assert frame.lens.receipt == Receipt(requests=2, provenance=Provenance(kind="sandbox"))
