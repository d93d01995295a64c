"""The NodePool reconciler: config and tokens, machine template, roll-out, status."""
