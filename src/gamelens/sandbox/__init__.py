"""Both services on this machine: everything runs offline and without an account.

A collector acknowledges only events that are on disk, a metrics service answers from them, and a control API stands
beside both. The room never speaks HTTP as a client, never sees a DataFrame and never stores an IP address.
Open `server` first. README.md has the way of an event and of a query through the parts.

Our choices, where the public documentation of the services is silent:

- Event time is `client_ts` if it is at most 365 days before arrival (`oldest_days` of the configuration) and at most
  24 h after it, else the arrival time (Wire 4.1, Event time).
- A player is (game, user_id), a session (game, session_id), so unique players add up over games and over nothing else
  (Wire 4.2, Player; Wire 4.3, Session; Wire 4.14, Adding up).
- Purchases and impressions are converted to US dollars with one fixed, dated table (Wire 3.8, Currencies).
- Impressions are stored in integer nano-units of their currency. One without usable revenue counts as 0
  (Wire 4.6, Impression).
- A body may unpack to 16 MB and JSON may be 32 levels deep (Wire 1.6, Body limits). A filter may be 16 levels deep and
  have at most 500 objects, and a list of values counts as one (Wire 2.7, Filters).
- A body with more than 10,000 bad events is 413 as a whole, and so is a bad or nested one of over a million values
  (Wire 1.6, Body limits).
- A body may be gzipped once (`gzip` or `x-gzip`), in up to 512 members. Any other coding is undecodable
  (Wire 1.6, Body limits).
- A body may take 15 s (408, then the connection is closed). An offer to change to HTTP/2 is ignored
  (Wire 1.2, Connections).
- `Connection: keep-alive` is sent, as documented, where the connection stays open. A preflight allows two headers more
  than other responses name (Wire 1.5, Response headers).
- The body of a 200 for events is empty for custom integrations and `{}` for others: official clients read an empty
  body as no connection (Wire 1.7, Submitting events; Wire 1.18, Official clients).
- The same `event_uuid` of a game counts once, the first copy to arrive, unless `--repeats count` counts every copy
  (Wire 4.8, Repeated events). Of a field that
  an event has twice, the first copy counts (Wire 1.8, Rejected events).
- Events are judged leniently: undocumented fields, platforms and versions are accepted and stored. `--validation
  strict` refuses them. Even then `custom_fields` may hold booleans, an `os_version` may name another known platform
  than `platform`, and the parts of `receipt_info` may be left out (Wire 3.4, Platforms and versions; Wire 3.7, Strict
  validation).
- A field that another one excludes (a `score` on Start) is `no_extra_properties_allowed`, an object of too many or too
  few entries is `wrong_size` (Wire 1.9, Error types). At most 100 errors of one event are listed
  (Wire 1.8, Rejected events).
- A hash of game, experiment and user id assigns players to experiments (Wire 1.13, Configs and experiments). Any field
  of an init may be absent, and without `user_id` there is no experiment (Wire 1.11, Version 2 init).
- The country of an IP address comes from the database that `--geoip` names, else from the ranges reserved for
  documentation. The address is the first of `X-Forwarded-For` if that is sent, else the sender's (Wire 1.17, Country).
- A body of the metrics service is at most 1 MB and complete within 15 s (Wire 2.5, Query body). One that the disk has
  no room for is 503. The query parameters `interval` and `limit` are given once (Wire 2.11, Lists).
- `GET /metrics/v1/interval` has the header `X-Data-Edition`: a random id that stays while events are added, and
  changes after a reset, after damage to the store and between state directories; and the header `X-Dated-By-Arrival`:
  the numbers of events that are dated by their arrival, by reason (Wire 2.4, Available interval).
- A query that takes over 30 s or more than the memory of all is 503, and so is one that waits as long for one of 6
  places, and an organisation has 3 of them (Wire 2.3, Rate limits). At most 5,000 buckets (Wire 2.8, Intervals and
  buckets) and 250,000 rows are answered (Wire 2.10, Row order).
- Each organisation is processed by a run of its own, which is tried again after a pause that grows
  (Wire 2.4, Available interval).
- An answer that would need a damaged or missing file of the lake is 503, with the reason; the others are given
  (Wire 2.12, Refusals).
- Each of several nodes limits alone, and a request comes to a random one (Wire 2.3, Rate limits). The description
  needs no key (Wire 2.1, Metrics addresses).
- API keys are stored as SHA-256 digests, game secrets as they are, because a signature cannot be checked with less. An
  organisation's name has at most 100 characters; its files lie in a folder of that name, or of a digest of a long one
  (Wire 5.4, Sandbox configuration).
- A query of purchases or of ends of sessions is refused over days on which events of its games arrived as Event Data,
  which has neither (Wire 5.7, Event Data).
- The live feed has the newest 1000 events of each game and status. Rejected ones are gone after a restart
  (Wire 5.2, Live feed).
- Of the fault rules that fit a request, the first with strikes left decides alone, by its probability
  (Wire 5.3, Fault rules).
"""
