"""What a login leaves on disk, and when it is renewed."""

from __future__ import annotations

import base64
import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from hcp.cli.login import run, session
from hcp.cli.login.oauth import Refused, Server
from hcp.cli.login.session import Session
from hcp.errors import HcpError


def token(ends: int, **claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"exp": ends, **claims}).encode()).decode().rstrip("=")
    return f"e30.{body}.x"


def held(seconds: int, refresh: str = "r1") -> Session:
    ends = int(time.time()) + seconds
    return Session("https://oauth.example", "", token(ends), refresh, ends, "hcp login --name demo")


def test_a_session_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one.json"
    session.write(path, held(600))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert session.read(path, "hcp").refresh_token == "r1"


def test_a_token_that_is_good_is_given_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "by_refresh", lambda *_: pytest.fail("nobody is asked"))
    session.write(tmp_path / "one.json", held(600))
    assert session.renewed(str(tmp_path / "one.json"), "hcp").ends > time.time()


def test_one_that_ends_soon_is_renewed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(_: Server, refresh: str) -> dict[str, str]:
        asked.append(refresh)
        return {"id_token": token(int(time.time()) + 900), "refresh_token": "r2"}

    monkeypatch.setattr(Server, "by_refresh", answer)
    path = tmp_path / "one.json"
    session.write(path, held(30))
    first = session.renewed(str(path), "hcp")
    assert session.renewed(str(path), "hcp") == first
    assert asked == ["r1"]
    assert session.read(path, "hcp").refresh_token == "r2"


def test_a_login_that_is_over_says_how_to_log_in_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> dict[str, str]:
        raise Refused("no", cause="Refresh token expired.")

    monkeypatch.setattr(Server, "by_refresh", refuse)
    session.write(tmp_path / "one.json", held(-5))
    with pytest.raises(HcpError) as caught:
        session.renewed(str(tmp_path / "one.json"), "hcp")
    assert "hcp login --name demo" in str(caught.value.hint)


def test_without_a_session_the_error_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(HcpError) as caught:
        session.renewed(str(tmp_path / "none.json"), "hcp")
    assert "hcp login" in str(caught.value.hint)


def test_a_kubeconfig_holds_no_secret() -> None:
    place = run.Place("demo", "https://api.example:6443", Server("https://oauth.example", "PEM"), "secret-password")
    made = run.config(place, "alice", Path("/home/alice/s.json"), "/usr/bin/hcp")
    assert "secret-password" not in json.dumps(made)
    plugin = made["users"][0]["user"]["exec"]
    assert [plugin["command"], *plugin["args"]] == ["/usr/bin/hcp", "login", "token", "--session", "/home/alice/s.json"]
    assert base64.b64decode(made["clusters"][0]["cluster"]["certificate-authority-data"]) == b"PEM"


def test_a_token_that_is_none_is_refused() -> None:
    for text in ("", "a.b", "a.e30.c", "a.!.c"):
        with pytest.raises(HcpError):
            session.claims(text)


def test_only_https_is_asked() -> None:
    with pytest.raises(HcpError, match="https address"):
        Server("http://oauth.example").discover()
