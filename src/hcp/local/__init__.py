"""The embedded management cluster."""
