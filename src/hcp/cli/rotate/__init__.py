"""`rotate`: keys and certificates of a hosted cluster."""
