"""`create`: hosted clusters, node pools and kubeconfigs."""
