"""The client room: asks the metrics service and feeds the collector, over HTTP, politely.

It never computes a metric, never knows a sandbox, and never lets an httpx type or a key out. All of it is async;
questions run on one background loop (`loop`), with `metrics.Client` and `async_metrics.AsyncClient` as their two faces.

The way of a question: a face (`faces` is what both are made of) hands it to the `core`; `asking` leads it from its
arguments to its frame. `spans` says when, `planning` says which requests, `fetching` takes what the `cache` knows and
asks the `service` for the rest, through `transport` and at the speed of `pacing` (`slots` are shared by all processes,
`probing` tries for more). `tables` reads the answers and puts them together, `frames` makes the DataFrame, `receipts`
say how it came about. `estimates` is a plan without the asking, `resuming` a frame asked again, `recording` a service
that has been asked before, `checkup` what `gamelens doctor` says.

The way of an event: `session` or `server` has a `player`, who records it, `annotations` checks it, `outbox` keeps it,
and `courier` brings it to the `collector` when `delivery` says so.

Open `metrics` first; for events, `session`.
"""
