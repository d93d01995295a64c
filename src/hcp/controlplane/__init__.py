"""Pure builders, one file per control-plane component."""
