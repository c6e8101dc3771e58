"""The only modules that import DuckDB, Spark or sqlglot.

Never decide what a metric means: they run the SQL they are given. Open `engine` first.
"""
