"""Archives of Go modules: where they are, and the sum by which Go knows them.

setup.py uses it, so it needs nothing but the standard library.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile


def proxy() -> str:
    """The first module proxy that Go would ask."""
    for word in os.environ.get("GOPROXY", "").replace("|", ",").split(","):
        if word.startswith(("http://", "https://")):
            return word.rstrip("/")
    return "https://proxy.golang.org"


def archive_url(module: str, version: str) -> str:
    return f"{proxy()}/{module}/@v/{version}.zip"


def module_hash(archive: zipfile.ZipFile) -> str:
    """The sum that go.sum has for a module: over names and hashes of its files, in the order of their names."""
    lines = []
    for name in sorted(info.filename for info in archive.infolist() if not info.is_dir()):
        digest = hashlib.sha256()
        with archive.open(name) as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
        lines.append(f"{digest.hexdigest()}  {name}\n")
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()
