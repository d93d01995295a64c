"""Chromium without a window, told what to do over a pipe in its own debugging protocol."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually_sync

from hcp import payload

ARTIFACT = "test-browser"
# The browser reads from descriptor 3 and writes to 4.
_ON_PIPES = 'exec "$@" 3<&"$READS" 4>&"$WRITES"'
SECONDS = 180.0


class Page:
    """One page of a browser that is running."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._number, self._session = write, read, b"", 0, ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, url: str) -> None:
        error = self._ask("Page.navigate", url=url).get("errorText")
        assert not error, f"{url}: {error}"

    def value(self, expression: str) -> Any:
        """Of an expression in the page's own language."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self) -> str:
        return str(self.value("document.body ? document.body.innerText : ''"))

    def shows(self, words: str, seconds: float = SECONDS) -> None:
        eventually_sync(lambda: words in self.text(), f"a page that says {words!r}", seconds)

    def fill_in(self, **fields: str) -> None:
        """As a person would: into the form that has these fields, and send it."""
        first = next(iter(fields))
        eventually_sync(lambda: self.value(f"!!document.querySelector('input[name={first}]')"), "the form", SECONDS)
        for name, value in fields.items():
            self.value(f"document.querySelector('input[name={name}]').value = {json.dumps(value)}; 0")
        self.value(f"document.querySelector('input[name={first}]').form.requestSubmit(); 0")

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, f"{method}: {said['error']}"
                found: dict[str, Any] = said["result"]
                return found

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            piece = os.read(self._read, 65536) if ready else b""
            assert piece, "the browser says nothing any more"
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found


@contextlib.contextmanager
def browser(folder: Path, trust: Path, around: Callable[..., list[str]] = lambda *words: [*words]) -> Iterator[Page]:
    """A browser with a home of its own that trusts this authority; `around` says how programs are started."""
    parts = payload.ensure([ARTIFACT])[ARTIFACT]
    home = folder / "home"
    database = home / ".pki" / "nssdb"
    database.mkdir(parents=True, exist_ok=True)
    store = f"sql:{database}"
    for words in (
        ("-N", "-d", store, "--empty-password"),
        ("-A", "-d", store, "-n", "authority", "-t", "C,,", "-i", str(trust)),
    ):
        subprocess.run([str(parts / "bin" / "certutil"), *words], check=True, capture_output=True, timeout=60)
    fonts = folder / "fonts.conf"
    fonts.write_text(f'<?xml version="1.0"?><fontconfig><dir>{parts / "share" / "fonts"}</dir></fontconfig>')
    to_browser, from_browser = os.pipe(), os.pipe()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FONTCONFIG_FILE": str(fonts),
        "READS": str(to_browser[0]),
        "WRITES": str(from_browser[1]),
    }
    flags = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--no-proxy-server", "--disable-background-networking", "--remote-debugging-pipe"),
        f"--user-data-dir={folder / 'profile'}",
    )
    command = around("bash", "-c", _ON_PIPES, "bash", str(parts / "bin" / "chromium"), *flags)
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=env, stdout=log, stderr=log, pass_fds=(to_browser[0], from_browser[1]), cwd=folder
        )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Page(to_browser[1], from_browser[0])
    except BaseException:
        print((folder / "chromium.log").read_text(errors="replace")[-4000:])
        raise
    finally:
        process.terminate()
        process.wait(30)
        os.close(to_browser[1])
        os.close(from_browser[0])
