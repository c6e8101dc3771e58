"""Limits of both services, with the section of `wire/README.md` that states each."""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Collector
BODY_BYTES: Final = MIB  # Wire 1.6, Body limits; for queries our choice (Wire 2.5, Query body)
UNPACKED_BYTES: Final = 16 * MIB  # Our choice: Wire 1.6, Body limits
JSON_DEPTH: Final = 32  # Our choice: Wire 1.6, Body limits
SUBMIT_PERIOD_S: Final = 20.0  # Wire 1.15, Client queue
FUTURE_S: Final = 24 * 3600  # Our choice: a time further ahead is not used (Wire 4.1, Event time)
OLDEST_DAYS: Final = 365  # Our choice: an older time is not used; a sandbox may have another (Wire 4.1, Event time)
MAX_SAFE_INTEGER: Final = 2**53 - 1  # Our choice: what every JSON reader keeps exact (Wire 3.5, Category fields)
USUAL_SESSION_S: Final = 24 * 3600  # Our choice: a longer one is remarked on (Wire 4.11, Metrics)

# Metrics
REQUESTS_PER_SECOND: Final = 5  # Wire 2.3, Rate limits
REQUESTS_AT_ONCE: Final = 5  # Wire 2.3, Rate limits
METRIC_LISTS_PER_SECOND: Final = 1000  # Wire 2.3, Rate limits
DEFAULT_LIMIT: Final = 100  # Wire 2.5, Query body
MAX_LIMIT: Final = 30_000  # Wire 2.5, Query body
MAX_DAYS: Final = 31  # Wire 2.8, Intervals and buckets: day granularity only
FILTER_DEPTH: Final = 16  # Our choice: Wire 2.7, Filters
FILTER_OBJECTS: Final = 500  # Our choice: a list of values counts as one, however long (Wire 2.7, Filters)
MAX_BUCKETS: Final = 5000  # Our choice: Wire 2.8, Intervals and buckets
MAX_ROWS: Final = 250_000  # Our choice: Wire 2.10, Row order
QUERY_S: Final = 30.0  # Our choice: Wire 2.3, Rate limits
REFRESH_S: Final = 3600.0  # Wire 2.4, Available interval
