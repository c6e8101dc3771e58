"""Names and meanings: every metric, every dimension, how values combine. Tables, no I/O.

The one place that says what a metric is; the sandbox serves it, the client types frames by it. Open `metrics` first.
"""

from gamelens.catalog.dimensions import DIMENSIONS, Dimension
from gamelens.catalog.metrics import METRICS, Field, Metric, Quotient, check, metric_named

__all__ = ["DIMENSIONS", "METRICS", "Dimension", "Field", "Metric", "Quotient", "check", "metric_named"]
