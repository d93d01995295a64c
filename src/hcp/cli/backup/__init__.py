"""`backup`: backups of hosted clusters."""
