"""What an analyst sees: the `.lens` accessor on frames, figures, sentences and reports.

Never computes what `analysis` can, and never asks a service. Nothing here imports plotly or IPython until something is
drawn or said. Open `accessor` first.
"""

from gamelens.notebook.sentences import say

__all__ = ["say"]
