"""Checks shared by `create` and `doctor`."""
