"""Our own manifests for a management cluster."""
