"""Numbers in several currencies by row are never added up without a word, whatever role an argument gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame

ROWS = (
    "2026-10-01,eur,4.99,4.50,0.49",
    "2026-10-01,usd,9.99,9.35,0.64",
    "2026-10-01,usd,-4.99,-5.35,0.36",
    "2026-10-01,eur,19.99,18.80,1.19",
)
FRAME = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[5])


def balance(path: Path, fee: str = "Processing fee") -> Path:
    return written(path, f"Day,Currency,Brutto-Zug,Rest,{fee}", *ROWS)


def test_numbers_that_an_amount_relates_are_money(tmp_path: Path) -> None:
    """What came in is what stays and the fee, in every row."""
    table = gl.read_table(balance(tmp_path / "balance.csv"))
    assert {table.column(name).role for name in ("Brutto-Zug", "Rest", "Processing fee")} == {"amount"}
    assert "Brutto-Zug = Rest + Processing fee" in str(table.column("Rest").evidence[0])
    rest = gl.join(FRAME, table, columns=["Rest"], rate={"EUR": 2}).frame["Rest"]
    assert rest.tolist() == pytest.approx([2 * 23.3 + 4.0])


@pytest.mark.parametrize(
    "reading",
    [
        {"roles": {"Rest": "count"}},
        {"roles": {"Rest": "count"}, "how": {"Rest": "sum"}},
        {"roles": {"Rest": "number"}, "how": {"Rest": "sum"}},
        {"roles": {"Rest": "number"}, "how": {"Rest": "mean"}},
        {"roles": {"Rest": "stock"}},
        {"roles": {"Rest": "cumulative"}},
    ],
)
def test_no_role_adds_up_currencies(tmp_path: Path, reading: dict[str, Any]) -> None:
    path = balance(tmp_path / "balance.csv", fee="Key")
    with pytest.raises(BadQuery, match=r'may be money in EUR and USD within one key.*roles=\{"Rest": "cost"\}'):
        gl.join(FRAME, path, columns=["Rest"], **reading)
    as_money = gl.join(FRAME, path, columns=["Rest"], roles={"Rest": "income"}, rate={"EUR": 2}).frame
    assert as_money["Rest"].tolist() == pytest.approx([50.6])


def test_signs_of_currencies_in_the_cells_are_several(tmp_path: Path) -> None:
    path = written(tmp_path / "fees.csv", "Date,Honorarium", "2026-10-01,€5", "2026-10-01,$7", "2026-10-01,€5")
    with pytest.raises(BadQuery, match=r"may be money in \$ and € within one key"):
        gl.join(FRAME, path, columns=["Honorarium"], roles={"Honorarium": "count"})


def test_whole_counts_beside_currencies_add_up_with_a_note(tmp_path: Path) -> None:
    rows = ["2026-10-01,EUR,5,7.5", "2026-10-01,USD,6,8.5"]
    path = written(tmp_path / "orders.csv", "Date,Currency,Bons,Cost", *rows)
    joined = gl.join(FRAME, path, columns=["Bons"], roles={"Bons": "count"})
    assert joined.frame["Bons"].tolist() == [11]
    assert any("Bons adds up rows of EUR and USD" in warning for warning in joined.report.warnings)


def test_roles_of_money_are_offered_for_numbers_with_parts(tmp_path: Path) -> None:
    path = balance(tmp_path / "balance.csv", fee="Key")
    with pytest.raises(BadQuery, match=r'nothing says of what.*roles=\{"Rest": "cost"\}') as refused:
        gl.join(FRAME, path, columns=["Rest"])
    assert "count" not in refused.value.rule


def test_a_number_of_several_days_may_be_money(tmp_path: Path) -> None:
    rows = ["2026-10-01,Meta,Ann,100.50,0.9", "2026-11-01,Meta,Bob,60,0.8", "2026-12-01,Meta,Bob,30,0.7"]
    path = written(tmp_path / "plan.csv", "Month,Channel,Owner,Realised,Done %", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-01", "2026-11-01", "2026-12-01"], new_users=[5, 6, 7])
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2027-01-01T00:00Z"}
    with pytest.raises(BadQuery, match=r'roles=\{"Realised": "cost"\} if it is money spent'):
        gl.join(frame, path, columns=["Realised"])
    joined = gl.join(frame, path, columns=["Realised"], roles={"Realised": "cost"}, currency="EUR").frame
    assert joined["Realised"].tolist() == [100.5, 60.0, 30.0]
