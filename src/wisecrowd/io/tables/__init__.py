"""Tables with one vote per row: CSV, Parquet, JSON."""
