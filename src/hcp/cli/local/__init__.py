"""`local`: an embedded management cluster on this machine."""
