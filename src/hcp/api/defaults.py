"""Values that hold where the user gives none, each written once. Imports nothing: the command line loads it early."""

from __future__ import annotations

CLUSTER_CIDR = "10.132.0.0/14"
SERVICE_CIDR = "172.31.0.0/16"
# Beside them in clusters of both families.
CLUSTER_CIDR_V6 = "fd01::/48"
SERVICE_CIDR_V6 = "fd02::/112"
# Where pods of the guest reach the API, by the family of the service network.
ADVERTISE_V4 = "172.20.0.1"
ADVERTISE_V6 = "fd00::1"
API_PORT = 6443
NODE_PORTS = (30000, 32767)

ETCD_SIZE = "8Gi"

# A virtual machine.
ROOT_SIZE = "32Gi"
MEMORY = "8Gi"
CORES = 2
