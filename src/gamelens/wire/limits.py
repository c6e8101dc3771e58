"""The numbers both specifications fix, or leave to us (`Our choice`)."""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Collector
BODY_BYTES: Final = MIB  # Collector, Limits: 1 MB as sent; for queries our choice
UNPACKED_BYTES: Final = 16 * MIB  # Our choice
JSON_DEPTH: Final = 32  # Our choice
SUBMIT_PERIOD_S: Final = 20.0  # Collector, POST events 3
FUTURE_S: Final = 24 * 3600  # Our choice: a client clock further ahead than this is not believed

# Metrics
REQUESTS_PER_SECOND: Final = 5  # Metrics, Limits
REQUESTS_AT_ONCE: Final = 5  # Metrics, Limits
METRIC_LISTS_PER_SECOND: Final = 1000  # Metrics, Limits
DEFAULT_LIMIT: Final = 100  # public-facts 3.3
MAX_LIMIT: Final = 30_000  # public-facts 3.3
MAX_DAYS: Final = 31  # public-facts 3.3, day granularity only
FILTER_DEPTH: Final = 16  # Our choice
FILTER_OBJECTS: Final = 500  # Our choice; a list of values is one, however long
REFRESH_S: Final = 3600.0  # Metrics, What the service does 4
