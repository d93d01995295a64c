"""A cluster without nodes."""

from tests.support.operator_fixtures import admin, server

__all__ = ["admin", "server"]
