"""`wait`: until a hosted cluster or node pool is ready or gone."""
