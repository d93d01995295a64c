"""How large things can be that come from outside."""

from __future__ import annotations

# A HostedCluster with hundreds of pools is far below.
MOST_OBJECTS = 32 * 1024**2
# etcd's own bound is 8 GiB.
LARGEST_SNAPSHOT = 16 * 1024**3
