"""Both services on embedded engines: everything runs with no account and offline.

A collector that acknowledges only what is on disk, a metrics service that answers from it, and a control surface
beside them. The room never speaks HTTP as a client, never sees a DataFrame and never keeps an IP address. Open
`serving` first; an event's way is `collector`, `admission`, `inbox`, `processing` (`staging` with `decoding`, then
`building`), `lake`; a question's is `metrics`, `planner` (over `sources`), `engine`. What the lake holds is in
`tables`, and `verifying` reads the inbox again to see whether it is true.

Our choices, where both specifications are silent:

- Event time is `client_ts` when it is 0 to 99999999999 and at most 24 h after arrival, else the arrival time.
- A player is (game, user_id), a session (game, session_id): unique players add up over games and over nothing else.
- Purchases and impressions are converted to US dollars with one fixed, dated table (`gamelens.wire.currencies`).
- Impressions are stored in integer nano-units of their currency; what names no usable revenue counts as 0.
- A body may unpack to 16 MB; JSON may be 32 levels deep; a filter 16.
- A body of the metrics service is at most 1 MB and comes within 15 s. `interval` and `limit` are given once.
- Each of several nodes limits alone, and a request comes to any of them. The description needs no key.
- API keys are kept as SHA-256 digests; game secrets as they are, because a signature cannot be checked with less.
- The same `event_uuid` of a game counts once, the first copy to arrive; so does a field that one event gives twice.
- The live view keeps the newest 1000 events of each game and status; the rejected ones are gone after a restart.
- Of the fault rules that fit a request, the first with strikes left decides alone, by its probability.
- The country of an IP address comes from a small table of test ranges (`gamelens.sandbox.countries`).
"""
