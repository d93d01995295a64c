"""`rbac`: RBAC manifests for others to apply."""
