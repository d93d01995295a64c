"""`destroy`: hosted clusters and node pools."""
