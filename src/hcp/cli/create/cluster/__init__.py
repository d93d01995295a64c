"""`create cluster`: one module with flags per platform; the rest is the work behind them."""
