"""`destroy cluster`: one module with flags per platform."""
