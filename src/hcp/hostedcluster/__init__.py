"""The HostedCluster reconciler: scope, phases, status, deletion."""
