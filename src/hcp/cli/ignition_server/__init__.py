"""`ignition-server`: the node bootstrap server process."""
