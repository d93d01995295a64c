"""Hosted Kubernetes control planes with KubeVirt workers."""

__version__ = "0.1.0"
