"""The clean room's rules that need no room: what is passed in, what is asked for, what is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fresh.cgroups import parse_mounts
from tests.fresh.host_config import passed_environment, passed_paths
from tests.fresh.run import chosen
from tests.fresh.steps import STEPS, Result, clock, table

from hcp.errors import HcpError


def test_only_the_way_to_registries_is_passed_in(tmp_path: Path) -> None:
    wheels, certificates = tmp_path / "wheels", tmp_path / "ca.pem"
    wheels.mkdir()
    certificates.touch()
    machine = {
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_FIND_LINKS": str(wheels),
        "GOPROXY": "https://proxy.example",
        "https_proxy": "http://proxy.example:3128",
        "NO_PROXY": "localhost",
        "SSL_CERT_FILE": str(certificates),
        "PATH": "/opt/tools/bin",
        "PYTHONPATH": "/somewhere",
        "MAKEFLAGS": "-k",
        "KUBECONFIG": "/home/me/.kube/config",
        "GOFLAGS": "-mod=vendor",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    names = {"PIP_INDEX_URL", "PIP_FIND_LINKS", "GOPROXY", "https_proxy", "NO_PROXY", "SSL_CERT_FILE"}
    assert set(passed_environment(machine)) == names
    assert passed_paths(machine) == {wheels: str(wheels), certificates: str(certificates)}


def test_steps_can_be_chosen_and_keep_their_order() -> None:
    assert [step.name for step in chosen("unit install")] == ["install", "unit"]
    assert chosen("") == list(STEPS)
    assert chosen("demo", cold=True)[0].command == "make demo"
    with pytest.raises(HcpError, match="no step unity") as caught:
        chosen("install unity")
    assert "integration" in (caught.value.hint or "")


def test_every_command_of_the_readme_is_a_step() -> None:
    """`make test` is run target by target, so that each has its time."""
    makefile = (Path(__file__).parents[3] / "Makefile").read_text()
    (line,) = [line for line in makefile.splitlines() if line.startswith("test: ")]
    targets = line.partition("##")[0].removeprefix("test: ").split()
    commands = {step.command for step in STEPS}
    assert {f"make {target}" for target in targets} <= commands
    assert "make demo NODES=0" in commands


def test_the_table_names_what_failed() -> None:
    text = table([Result("install", "make install", 61.2, 0), Result("unit", "make test-unit", 5, 2)])
    assert text.splitlines() == [
        "STEP     COMMAND         TIME        RESULT",
        "install  make install    1 min 01 s  ok",
        "unit     make test-unit  5 s         failed with 2",
        "         all             1 min 06 s",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.2, "59 s"), (61.5, "1 min 02 s"), (3600, "60 min 00 s")]
)
def test_times(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_hierarchies_of_both_kinds_are_read() -> None:
    mounts = """\
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime,nsdelegate 0 0
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
"""
    assert list(parse_mounts(mounts)) == [
        ("cpu,cpuacct", "cgroup", "cpu,cpuacct"),
        ("systemd", "cgroup", "name=systemd"),
        ("unified", "cgroup2", ""),
    ]
    assert list(parse_mounts("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n")) == [(".", "cgroup2", "")]
