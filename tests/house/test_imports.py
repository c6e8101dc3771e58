"""What importing gamelens changes in the process of others: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

from house.source import ROOT

STATE = """
import json, logging, os, sys, warnings
import pandas as pd
import plotly.io

def state():
    return {
        "options": {name: repr(pd.get_option(name)) for name in sorted(names)},
        "template": str(plotly.io.templates.default),
        "filters": repr(warnings.filters),
        "hook": repr(sys.excepthook),
        "handlers": repr(logging.getLogger().handlers),
        "environment": dict(os.environ),
    }

names = []
names.extend(pd._config.config._registered_options)
before = state()
import gamelens as gl
gl.connect, gl.join, gl.export_excel, gl.open_lake
from gamelens import analysis
from gamelens.notebook import charts, check_health, conclusions, widgets
import gamelens.notebook.accessor
print(json.dumps([before, state()]))
"""


def test_importing_changes_nothing_of_others() -> None:
    """Options of pandas, plotly's template, warnings, hooks, logging and environment stay as they were."""
    done = subprocess.run([sys.executable, "-c", STATE], capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert len(before["options"]) > 20
    assert {name for name in before if before[name] != after[name]} == set()


def test_pandas_finds_the_drawing_by_an_entry_point() -> None:
    """`df.plot(backend="gamelens")` is the module whose function `plot` draws a frame."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pandas_plotting_backends"] == {"gamelens": "gamelens.notebook.accessor"}
