"""Putting the operator and releases into a registry of the user's."""
