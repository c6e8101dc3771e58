"""Both services on embedded engines: everything runs with no account and offline.

A collector that acknowledges only what is on disk, a metrics service that answers from it, and a control surface
beside them. The room never speaks HTTP as a client, never sees a DataFrame and never keeps an IP address. Open
`serving` first. An event's way is `collector` (over `bodies`), `admission`, `inbox`, `processing` (`staging` with
`decoding`, then `building`), `lake`; a question's is `metrics`, `scoping`, `planner` (over `expressions` and
`sources`), `engine` or `spark`. What the lake holds is in `tables`, `verifying` reads the inbox again to see whether
it is true, and `damage` is what happens to a store that cannot be read. `filling` takes in events that were written and
never received.

Our choices, where both specifications are silent:

- Event time is `client_ts` when it is 0 to 99999999999 and at most 24 h after arrival, else the arrival time.
- A player is (game, user_id), a session (game, session_id): unique players add up over games and over nothing else.
- Purchases and impressions are converted to US dollars with one fixed, dated table (`gamelens.wire.currencies`).
- Impressions are stored in integer nano-units of their currency; what names no usable revenue counts as 0.
- A body may unpack to 16 MB; JSON may be 32 levels deep; a filter 16, and made of at most 500 objects: a list of
  values is one of them, however long.
- A body of which more than 10,000 events are bad is 413 as a whole; so is a bad or nested one of over a million values.
- A body may be gzipped once (`gzip` or `x-gzip`), in up to 512 members; twice, or in any other way, is undecodable.
- Headers may take 10 s and 64 KB, a body 15 s (408 and 431, then the connection is closed); an answer of which nothing
  is read for 60 s is dropped. `Connection: keep-alive` is said, as the specification has it, where it is true.
- A body of the metrics service is at most 1 MB and comes within 15 s; one that the disk has no room for is 503.
  `interval` and `limit` are given once.
- `GET /metrics/v1/interval` says in the header `X-Data-Edition` which collection of events the answers are about: a
  random id that stays while events are added and processed, and is another one after `POST /reset`, after damage to
  the store and in every other state directory.
- Each of several nodes limits alone, and a request comes to any of them. The description needs no key.
- API keys are kept as SHA-256 digests; game secrets as they are, because a signature cannot be checked with less.
- The same `event_uuid` of a game counts once, the first copy to arrive; so does a field that one event gives twice.
- Events are judged leniently: fields, platforms and versions that nobody documented are accepted and kept. Strictly
  (`--validation strict`) they are refused. Even then `custom_fields` may hold booleans, an `os_version` may name
  another known platform than `platform`, and the parts of `receipt_info` may be left out.
- A field that another one gives no place (a `score` on Start) is `no_extra_properties_allowed`, too many or too few
  entries of an object are `wrong_size`; at most 100 errors of one event are told.
- The live view keeps the newest 1000 events of each game and status; the rejected ones are gone after a restart.
- Of the fault rules that fit a request, the first with strikes left decides alone, by its probability.
- The country of an IP address comes from the database that `--geoip` names, else from a small table of test ranges
  (`gamelens.sandbox.collector.geoip`). The address is the first of X-Forwarded-For where that is sent, else the sender's.
"""
