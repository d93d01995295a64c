"""`scale`: how many nodes there are."""
