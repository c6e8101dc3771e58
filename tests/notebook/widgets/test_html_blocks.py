"""HTML that widgets show."""

from __future__ import annotations

import pandas as pd

from gamelens.notebook.widgets.html_blocks import table


def test_a_null_name_is_unknown_and_a_missing_number_is_na() -> None:
    """In a table a null name is (unknown), and a missing number n/a."""
    frame = pd.DataFrame({"network": pd.Categorical(["AppLovin", None]), "ecpm": [1.5, None]})
    unnamed = table(frame).split("<tr>")[-1]
    assert '<td class="none">(unknown)</td>' in unnamed
    assert "n/a" in unnamed
