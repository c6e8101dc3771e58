"""Answers kept on disk by bucket, so that only what may have changed is asked for again.

`answers` is the cache, `store` its folder: rows in Parquet `files`, and an `index` in SQLite, whose tables are in
`entries`. Nothing is written but what is passed in, and never a key. Open `answers` first.
"""

from gamelens.client.cache.answers import Asked, Cache, CacheInfo, Found, cache_folder

__all__ = ["Asked", "Cache", "CacheInfo", "Found", "cache_folder"]
