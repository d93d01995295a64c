"""`create config-drive`."""
