"""What clicks lead to, and who is shown ads, is no plan; what purchases are worth is income."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from support.outside_files import written


@pytest.mark.parametrize(
    ("header", "role", "concept"),
    [
        ("点击次数（目标网址）", "count", "clicks"),
        ("点击量(目標頁面)", "count", "clicks"),
        ("クリック数（ターゲットページ）", "count", "clicks"),
        ("Clicks (target URL)", "count", "clicks"),
        ("Cost (target audience)", "amount", "cost"),
        ("Coste (público objetivo)", "amount", "cost"),
        ("目标花费", "amount", "planned"),
        ("Target cost", "amount", "planned"),
        ("Coste objetivo", "amount", "planned"),
        ("购买总价值（网站）", "amount", "income"),
        ("转化总价值", "amount", "income"),
        ("구매 가치", "amount", "income"),
    ],
)
def test_targets_and_values(tmp_path: Path, header: str, role: str, concept: str) -> None:
    rows = [f"2026-10-0{day}\t{day * 7}" for day in range(1, 5)]
    column = gl.read_table(written(tmp_path / "report.tsv", f"Date\t{header}", *rows)).column(header)
    assert (column.role, column.concept) == (role, concept)
