"""`install` and `install render`: the operator on a management cluster."""
