"""What every integration test is given."""

from __future__ import annotations

from tests.api_fixtures import api_server, bin_dir, client, local_server, namespace, own_server, shared_server

__all__ = ["api_server", "bin_dir", "client", "local_server", "namespace", "own_server", "shared_server"]
