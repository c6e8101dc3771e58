"""What a widget shows as HTML."""

from __future__ import annotations

import pandas as pd

from gamelens.notebook.widgets.html_blocks import table


def test_a_group_without_a_name_is_unknown_and_a_number_that_is_not_there_is_na() -> None:
    frame = pd.DataFrame({"network": pd.Categorical(["AppLovin", None]), "ecpm": [1.5, None]})
    unnamed = table(frame).split("<tr>")[-1]
    assert '<td class="none">(unknown)</td>' in unnamed
    assert "n/a" in unnamed
