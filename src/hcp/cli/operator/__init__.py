"""`operator`: the operator process."""
