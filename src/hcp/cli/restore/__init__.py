"""`restore`: a hosted cluster from a backup."""
