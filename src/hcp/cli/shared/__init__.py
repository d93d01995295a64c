"""What several commands need: the way to a management cluster, reading its objects, waiting for them."""
