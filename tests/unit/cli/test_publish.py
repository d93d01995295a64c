"""`create cluster kubevirt --publish`: how the API server is reached."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.unit.cli_lines import render


def kinds(tmp_path: Path, *words: str) -> dict[str, str]:
    found = render(tmp_path, *words).one("HostedCluster")["spec"]["services"]
    return {one["service"]: one["servicePublishingStrategy"]["type"] for one in found}


def test_an_address_of_its_own_is_the_default(tmp_path: Path) -> None:
    assert kinds(tmp_path) == kinds(tmp_path, "--publish=load-balancer")
    assert kinds(tmp_path)["APIServer"] == "LoadBalancer"


def test_by_route_nothing_needs_an_address(tmp_path: Path) -> None:
    found = kinds(tmp_path, "--publish", "route")
    assert set(found) == {"APIServer", "Ignition", "Konnectivity", "OAuthServer"}
    assert set(found.values()) == {"Route"}
    assert "external-dns" not in render(tmp_path, "--publish=route").err


@pytest.mark.parametrize("words", [["--publish=route", "--external-dns-domain=x"], ["--publish=ingress"]])
def test_what_contradicts_is_refused(tmp_path: Path, words: list[str]) -> None:
    result = render(tmp_path, *words)
    assert result.code == 1 and "publish" in result.err
