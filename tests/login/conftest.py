"""A management cluster without nodes, the operator inside the test, and a hosted cluster to log in to."""

from tests.support.login_place import begin
from tests.support.operator_fixtures import admin, operator, server

__all__ = ["admin", "begin", "operator", "server"]
