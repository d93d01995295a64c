"""Building binaries, images, releases and boot disks.

`ensure` gives a finished, read-only directory per component; `find` only looks. Everything lives in a
content-addressed cache (see `store`), so a second run builds nothing.
"""

from hcp.payload.background import ensure_async
from hcp.payload.component import Component, Download
from hcp.payload.context import BuildContext
from hcp.payload.engine import Engine, ensure, find
from hcp.payload.progress import Progress

__all__ = ["BuildContext", "Component", "Download", "Engine", "Progress", "ensure", "ensure_async", "find"]
