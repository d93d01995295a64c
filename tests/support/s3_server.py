"""An object store that checks signatures, on this machine: `rclone serve s3`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually_sync

RCLONE = str(Path(sys.executable).with_name("rclone"))


@contextmanager
def serving(home: Path, port: int, access_key: str, secret_key: str, address: str = "127.0.0.1") -> Iterator[str]:
    """Every folder in `home` is a bucket; gives the address to ask on this machine."""
    url = f"http://127.0.0.1:{port}"
    words = ("serve", "s3", "--addr", f"{address}:{port}", "--auth-key", f"{access_key},{secret_key}")
    process = subprocess.Popen([RCLONE, *words, "--vfs-cache-mode", "off", "--config", "/dev/null", str(home)])
    try:
        eventually_sync(lambda: process.poll() is not None or _answers(url), "the object store answers", 120)
        assert process.poll() is None
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    with contextlib.suppress(urllib.error.HTTPError):  # it wants a signature, so it is there
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2)
    return True
