"""The client room: asks the metrics service and feeds the collector, over HTTP, politely.

It never computes a metric, never knows a sandbox, and never lets an httpx type or a key out. All of it is async;
questions run on one background loop (`loop`), with `metrics.Client` and `metrics.AsyncClient` as their two faces.

The way of a question: `metrics` takes it, `spans` says when, `planning` says which requests, `service` asks through
`transport` and `pacing`, `rows` puts pieces together, `frames` makes the DataFrame and `receipts` says how it came
about. The way of an event: `session` or `server` has a `player`, who records it, `annotations` checks it, `outbox`
keeps it, and `courier` brings it to the `collector` when `delivery` says so.

Open `metrics` first; for events, `session`.
"""
