"""Is there a way out to the publishers? Asked once per run, all at the same time, within seconds.

A name that does not resolve, a refused connection, no answer in time, and a web page where a file should be (a portal
that wants a login first) all mean no. What a server lacks or refuses is another matter, seen when it is fetched.
"""

from __future__ import annotations

import json
import queue
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

_SECONDS = 3.0
_ALTOGETHER = 5.0
_known: dict[str, str] = {}


def base(url: str) -> str:
    """https://github.com/a/b → https://github.com."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def probe(urls: Iterable[str], seconds: float = _SECONDS) -> dict[str, str]:
    """Server → why it cannot be reached, empty if it can. Asks one URL of each server that this run has not asked."""
    chosen = {base(url): url for url in urls}
    answers: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    asked = [server for server in chosen if server not in _known]
    for server in asked:
        thread = threading.Thread(target=lambda s=server: answers.put((s, _trouble(chosen[s], seconds))), daemon=True)
        thread.start()
    end = time.monotonic() + max(_ALTOGETHER, seconds)
    for _ in asked:
        try:
            server, trouble = answers.get(timeout=max(0.01, end - time.monotonic()))
        except queue.Empty:  # resolving a name has no time-out of its own
            break
        _known[server] = trouble
    for server in asked:
        _known.setdefault(server, "no answer in time")
    return {server: _known[server] for server in chosen}


def forget() -> None:
    """A new run asks again."""
    _known.clear()


def _trouble(url: str, seconds: float) -> str:
    registry = url.endswith("/v2/")
    request = urllib.request.Request(url, method="GET" if registry else "HEAD", headers={"User-Agent": "hcp"})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return _portal(answer, registry)
    except urllib.error.HTTPError as error:
        return "it is a proxy that refuses" if error.code == 407 else ""
    except urllib.error.URLError as error:
        return _words(error.reason)
    except (OSError, HTTPException) as error:
        return _words(error)


def _portal(answer: HTTPResponse, registry: bool) -> str:
    kind = answer.headers.get_content_type()
    if registry:
        try:
            json.loads(answer.read(1 << 16) or b"{}")
        except ValueError:
            return "a web page answers instead of a registry"
        return ""
    return "a web page answers instead of files" if kind == "text/html" else ""


def _words(reason: object) -> str:
    if isinstance(reason, ssl.SSLError):
        return f"its certificate is not trusted ({getattr(reason, 'verify_message', '') or reason.reason})"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
