"""Executed notebooks that open anywhere: figures drawn by the page itself, with no network."""

from __future__ import annotations

from typing import Any, Final

import plotly.io

_PLOTLY: Final = "application/vnd.plotly.v1+json"
_FEW_BUTTONS: Final = {"displaylogo": False, "responsive": True}


def embed_figures(document: Any) -> None:
    """Give every figure of an executed notebook (an nbformat node) an HTML form that converters can show.

    The first one brings plotly.js along, once for the page; nothing is fetched.
    """
    is_first = True
    for output in (output for cell in document.cells for output in cell.get("outputs", ())):
        figure = output.get("data", {}).get(_PLOTLY)
        if figure is None:
            continue
        output["data"]["text/html"] = plotly.io.to_html(
            {"data": figure["data"], "layout": figure["layout"]},
            config=_FEW_BUTTONS,
            include_plotlyjs=is_first,
            include_mathjax=False,
            full_html=False,
            validate=False,
        )
        is_first = False
