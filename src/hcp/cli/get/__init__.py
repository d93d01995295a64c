"""`get`: lists of hosted clusters and node pools."""
