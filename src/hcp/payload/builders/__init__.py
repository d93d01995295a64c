"""Build functions, one file per kind of component in `versions.toml`: `build(ctx, entry)` fills `ctx.out`."""
