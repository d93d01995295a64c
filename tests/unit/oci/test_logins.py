"""Finding the logins that podman and docker keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.oci import Reference, logins

REF = Reference("r.example.com", "team/hcp/release")


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def _login(name: str, registry: str = "r.example.com") -> dict[str, object]:
    return {"auths": {registry: {"username": name, "password": "x"}}}


def _name(found: logins.Logins) -> str:
    login = found.auths.find(REF)
    return login.username if login else ""


def test_podman_comes_before_docker_and_a_named_file_before_both(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    assert _name(logins.find(REF, environment=environment)) == ""
    _write(tmp_path / ".docker" / "config.json", _login("docker"))
    assert _name(logins.find(REF, environment=environment)) == "docker"
    _write(tmp_path / ".config" / "containers" / "auth.json", _login("podman"))
    assert _name(logins.find(REF, environment=environment)) == "podman"
    # A file that knows other registries only does not hide the next one.
    _write(tmp_path / "run" / "containers" / "auth.json", _login("other", "quay.example.com"))
    assert _name(logins.find(REF, environment=environment)) == "podman"
    named = _write(tmp_path / "named.json", _login("named"))
    assert _name(logins.find(REF, environment=environment | {"REGISTRY_AUTH_FILE": str(named)})) == "named"
    assert logins.find(REF, str(named), environment).path == named


def test_the_longest_path_of_a_registry_wins(tmp_path: Path) -> None:
    config = _login("whole")
    config["auths"] |= {"r.example.com/team": {"username": "team", "password": "x"}}  # type: ignore[operator]
    assert _name(logins.find(REF, str(_write(tmp_path / "a", config)))) == "team"


@pytest.mark.parametrize(
    "config",
    [
        {"credHelpers": {"r.example.com": "ecr-login"}},
        {"credsStore": "ecr-login", "auths": {"r.example.com": {}}},
    ],
)
def test_a_credential_helper_is_named_not_ignored(tmp_path: Path, config: dict[str, object]) -> None:
    _write(tmp_path / ".docker" / "config.json", config)
    with pytest.raises(HcpError, match="credential helper ecr-login") as caught:
        logins.find(REF, environment={"HOME": str(tmp_path)})
    assert "--authfile" in str(caught.value.hint)
    other = Reference("other.example.com", "x")
    assert logins.find(other, environment={"HOME": str(tmp_path)}).path is None


def test_a_file_that_is_no_list_of_logins_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("hello")
    for text in ("bad", "missing"):
        with pytest.raises(HcpError, match="file with logins"):
            logins.find(REF, str(tmp_path / text))
    with pytest.raises(HcpError, match="cannot be used"):
        logins.find(REF, str(_write(tmp_path / "odd", {"auths": {"r.example.com": {"auth": "%%%"}}})))
