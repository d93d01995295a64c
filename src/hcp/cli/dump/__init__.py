"""`dump`: data for a bug report."""
