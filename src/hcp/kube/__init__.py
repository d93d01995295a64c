"""Talking to a Kubernetes API server: kubeconfig, HTTP, watch, apply, discovery, errors. Knows no types."""
