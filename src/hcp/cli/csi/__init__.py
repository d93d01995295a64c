"""`csi`: the processes of storage drivers."""
