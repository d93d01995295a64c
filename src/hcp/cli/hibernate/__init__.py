"""Putting hosted clusters to sleep, and waking them."""
