"""`vm`: the virtual machines that nodes run in."""
