"""The node of an embedded cluster: namespaces, mounts, cgroups, and the processes in them."""
