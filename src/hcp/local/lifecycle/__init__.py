"""Bringing an embedded cluster up and taking it down."""
