"""`router`: the router process."""
