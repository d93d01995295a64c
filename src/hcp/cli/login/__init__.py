"""`login`: getting in with a name and a password, or by a browser."""
