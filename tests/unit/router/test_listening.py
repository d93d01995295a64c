"""On which addresses the router listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.router.config import Settings, render
from hcp.router.run import has_six

LOOPBACK = "00000000000000000000000000000001 01 80 10 80       lo\n"
WIRE = "fe8000000000000000fc00fffe000001 02 40 20 80     eth0\n"
OWN = "fd686370000500000000000000000005 02 40 00 80     eth0\n"


@pytest.mark.parametrize(("table", "six"), [(LOOPBACK + WIRE, False), (LOOPBACK + WIRE + OWN, True), ("", False)])
def test_an_address_that_others_can_call_is_what_counts(tmp_path: Path, table: str, six: bool) -> None:
    (tmp_path / "if_inet6").write_text(table)
    assert has_six(tmp_path / "if_inet6") is six


def test_a_kernel_without_ipv6_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert not has_six(tmp_path / "missing")


def test_each_family_has_a_socket_of_its_own(tmp_path: Path) -> None:
    four = render(Settings(tmp_path, 80, 443, 6443))
    both = render(Settings(tmp_path, 80, 443, 6443, six=True))
    more = [line for line in both.splitlines() if line not in four.splitlines()]
    assert more == ["  bind [::]:443 v6only", "  bind [::]:6443 v6only accept-proxy", "  bind [::]:80 v6only"]
    assert "[::]" not in four
