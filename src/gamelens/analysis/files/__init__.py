"""Files: tables read from CSV, Parquet and Excel, and frames written to CSV.

Never knows a metric. Open `table_reader` first.
"""
