"""SELinux and AppArmor of the machine: what is said of them, and that nothing is said without a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.local.host import protections, resolvers


def test_only_a_confined_start_on_an_enforcing_machine_is_told() -> None:
    assert protections.selinux("", "") == protections.selinux("0", "system_u:system_r:init_t:s0") == ""
    assert protections.selinux("1", "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0") == ""
    assert "init_t" in protections.selinux("1", "system_u:system_r:init_t:s0\0")
    assert "unknown" in protections.selinux("1", "")


def test_profiles_of_what_runs_in_a_machine_s_pod_are_told() -> None:
    told = protections.apparmor(
        ["libvirtd//qemu_bridge_helper (enforce)", "/usr/sbin/libvirtd (enforce)", "swtpm (enforce)", "man (enforce)"]
    )
    assert "/usr/sbin/libvirtd" in told and "swtpm" in told and "man" not in told.split("(", 1)[1].split(")")[0]


def test_profiles_that_only_complain_or_are_for_others_are_not() -> None:
    assert protections.apparmor(["libvirtd (complain)", "/usr/bin/man (enforce)", "docker-default (enforce)"]) == ""


def test_a_machine_whose_resolvers_are_on_its_loopback_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ENFORCE", "_PROFILES"):
        monkeypatch.setattr(protections, name, Path("/nowhere"))
    monkeypatch.setattr(protections, "machine_nameservers", lambda: ["9.9.9.9"])
    assert protections.notes(machines=True) == []
    monkeypatch.setattr(protections, "machine_nameservers", list)
    [said] = protections.notes(machines=True)
    assert "resolver" in said


def test_with_systemd_resolved_its_own_servers_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub, real = tmp_path / "stub", tmp_path / "real"
    stub.write_text("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lan\n")
    real.write_text("nameserver fe80::1%2\nnameserver 192.168.1.1\nnameserver 192.168.1.2\nsearch lan\n")
    monkeypatch.setattr(resolvers, "_FILES", (stub, real))
    assert resolvers.machine_nameservers() == ["192.168.1.1", "192.168.1.2"]
    real.unlink()
    assert resolvers.machine_nameservers() == []
