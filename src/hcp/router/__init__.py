"""Routes on plain Kubernetes, served by HAProxy."""
