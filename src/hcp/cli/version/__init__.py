"""`version`: of this client and of the operator."""
