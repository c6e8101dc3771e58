"""The client room: asks the metrics service and feeds the collector, over HTTP, politely.

It never computes a metric, never knows a sandbox, and never lets an httpx type or a key out. All of it is async and
runs on one background loop (`loop`); `metrics.Client` and `metrics.AsyncClient` are its two faces. The way of a
question: `metrics` takes it, `spans` says when, `planning` says which requests, `service` asks through `transport` and
`pacing`, `rows` puts pieces together, `frames` makes the DataFrame and `receipts` says how it came about.

Open `metrics` first.
"""
