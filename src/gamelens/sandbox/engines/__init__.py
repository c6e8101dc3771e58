"""The query engines: DuckDB and Spark, and SQL in the dialect of each.

The part never decides what a metric means, and no other module imports duckdb, pyspark or sqlglot.
Open `engine` first.
"""
