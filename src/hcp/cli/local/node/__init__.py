"""`local node`: the nodes of an embedded cluster."""
