"""What runs as objects and pods inside an embedded cluster: pure builders, and the steps that apply them."""

from hcp.local.addons.steps import bring_up

__all__ = ["bring_up"]
