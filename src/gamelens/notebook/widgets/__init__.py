"""What an analyst picks from in a notebook: the explorer, the health board, a live view of the sandbox.

Each is made of plain ipywidgets, so it works in JupyterLab, Notebook 7 and Voila, fetches nothing, and has a static
twin (`static()`) for where no kernel runs. They ask in the background, survive a service that is gone, and show texts
from outside as text. Open `explorer` first; `latest` is how they ask, `panes` what they show.
"""

from gamelens.notebook.widgets.explorer import explorer
from gamelens.notebook.widgets.live import live

__all__ = ["explorer", "live"]
