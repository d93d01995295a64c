"""What `make test-hosts` decides before a machine boots, and how it tells what a cluster left."""

from __future__ import annotations

import pytest
from tests.hosts import distributions, footprint, payload_disk, run, settings, variants

from hcp.errors import HcpError


def test_what_came_and_what_went_is_told_each_by_itself() -> None:
    before = {"links": "eth0\nlo\n", "cgroups": "/sys/fs/cgroup/system.slice\n"}
    after = {"links": "eth0\nhcp0\nlo\n", "cgroups": ""}
    assert footprint.differences(before, after) == ["links: left: hcp0", "cgroups: gone: /sys/fs/cgroup/system.slice"]
    assert footprint.differences(before, before) == []


def test_names_are_chosen_by_words_and_a_wrong_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VARIANTS", "docker")
    assert run._chosen("VARIANTS", variants.ALL, variants.ALL) == ["docker"]
    monkeypatch.setenv("VARIANTS", "-")
    assert run._chosen("VARIANTS", variants.ALL, variants.ALL) == []
    monkeypatch.delenv("VARIANTS")
    assert run._chosen("VARIANTS", variants.ALL, variants.ALL) == list(variants.ALL)
    monkeypatch.setenv("VARIANTS", "podman")
    with pytest.raises(HcpError, match="there is no podman"):
        run._chosen("VARIANTS", variants.ALL, variants.ALL)


def test_each_change_is_checked_and_undone_before_the_next() -> None:
    names = [step.name for step in run._steps(variants.ALL.values())]
    for name in variants.ALL:
        ours = [step for step in names if step.startswith(f"{name}: ")]
        assert ours[0] == f"{name}: up"
        assert ours[-1] == f"{name}: without it again"
    assert names.index("before") < names.index("tour")
    assert names[-2:] == ["purge", "left"]


def test_the_machine_has_all_that_a_control_plane_is_made_of() -> None:
    found = payload_disk.components()
    for name in ("etcd", "kubernetes-1.36", "containerd", "node-tools", "image-hcp", "release-1.36", "image-etcd"):
        assert name in found
    assert not [name for name in found if name.startswith(("image-virt", "image-cdi"))]


def test_every_machine_has_systemd_and_a_way_in() -> None:
    for found in distributions.ALL.values():
        assert {"systemd-sysv", "openssh-server", "python3-venv", found.kernel} <= set(found.packages)
    assert settings.CACHE in settings.FILES["etc/fstab"]
    assert settings.KEYS in settings.FILES["etc/ssh/sshd_config.d/hcp.conf"]
