"""Chromium logs a person in for `hcp login --web`: dex's own pages, with a certificate that the browser checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import chromium
from tests.support.login_place import NAME, NS, Place, give

from hcp.controlplane import htpasswd
from hcp.kube import Client
from hcp.kube import resources as k

pytestmark = pytest.mark.timeout(2400)
# Words that no log has for other reasons.
WRONG, RIGHT = "a-guess-of-a-stranger", "correct-horse-battery"


async def test_a_browser_fills_in_the_form_and_the_command_has_its_tokens(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    await give(admin, "Secret", "people", {"htpasswd": htpasswd.line("alice", htpasswd.hashed(RIGHT, "salt")).decode()})
    provider = {"name": "people", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "people"}}}
    place: Place = await begin(configuration={"oauth": {"identityProviders": [provider]}})
    await place.serves()
    trust, folder = tmp_path / "browser-ca.crt", tmp_path / "browser"
    folder.mkdir()
    trust.write_text((await admin.get(k.CONFIGMAPS, "root-ca", NS))["data"]["ca.crt"])
    # The operator runs in this very loop, so nobody may hold it up.
    await asyncio.to_thread(_log_in, place, folder, trust)
    await place.is_known_as("alice")
    said = place.hosted.log.read_text()
    assert WRONG not in said and RIGHT not in said


def _log_in(place: Place, folder: Path, trust: Path) -> None:
    waiting = place.runner.start("login", "--name", NAME, "--web", env={"BROWSER": "true"})
    try:
        assert waiting.stderr is not None
        url = next(line.strip() for line in waiting.stderr if line.startswith("https://"))
        with chromium.browser(folder, trust) as page:
            page.open(url)
            page.fill_in(login="alice", password=WRONG)
            # The form comes again, with a word about it.
            page.shows("Invalid")
            assert waiting.poll() is None
            page.fill_in(login="alice", password=RIGHT)
            page.shows("You are logged in")
        _, said = waiting.communicate(timeout=180)
        assert waiting.returncode == 0, said
    finally:
        waiting.kill()
        waiting.communicate()
