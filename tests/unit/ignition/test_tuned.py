"""Tuned documents: which settings reach nodes, and that the rest is named."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.unit.ignition.test_ignition_node import files_of

from hcp.errors import HcpError
from hcp.ignition.tuned import SCHEDULER, SYSCTL, Tuning, read_tuning, tuning_document

GUIDE = """\
[main]
summary=For many connections
include=base,openshift-node
[variables]
backlog=4096
# a comment
[sysctl]
net.core.somaxconn=${backlog}
vm.max_map_count = 262144
net.ipv4.tcp_rmem=4096 87380 16777216
kernel.pid_max=>4194304
kernel.sched_migration_cost_ns=5000000
net.x=${f:exec:id}
[scheduler]
sched_min_granularity_ns=10000000
isolated_cores=1-3
[bootloader]
cmdline_own=+hugepagesz=2M hugepages=50
[vm]
transparent_hugepages=never
"""


def tuned(profiles: dict[str, str], *recommend: dict[str, Any]) -> str:
    spec = {"profile": [{"name": name, "data": data} for name, data in profiles.items()], "recommend": list(recommend)}
    return yaml.safe_dump({"apiVersion": "tuned.openshift.io/v1", "kind": "Tuned", "metadata": {}, "spec": spec})


def test_values_are_followed_and_the_rest_is_named() -> None:
    base = "[sysctl]\nvm.max_map_count=1\nvm.swappiness=10\n"
    found = read_tuning({"a": tuned({"own": GUIDE, "base": base}, {"priority": 20, "profile": "own"})})
    assert found.sysctl == {
        "net.core.somaxconn": "4096",
        "vm.max_map_count": "262144",
        "vm.swappiness": "10",
        "net.ipv4.tcp_rmem": "4096 87380 16777216",
    }
    assert found.scheduler == {"migration_cost_ns": "5000000", "min_granularity_ns": "10000000"}
    assert found.kernel_arguments == ["hugepagesz=2M", "hugepages=50"]
    assert found.without_effect == [
        "profile openshift-node (not in the ConfigMaps)",
        "[sysctl] kernel.pid_max of profile own",
        "[sysctl] net.x of profile own",
        "[scheduler] isolated_cores of profile own",
        "[vm] transparent_hugepages of profile own",
    ]
    files = files_of(tuning_document(found))
    assert "vm.max_map_count = 262144\n" in files[SYSCTL]
    assert files[SCHEDULER] == "migration_cost_ns 5000000\nmin_granularity_ns 10000000\n"


def test_one_process_sees_the_file_system_it_mounts() -> None:
    """Each process of a unit with mounts of its own has its own."""
    [made] = tuning_document(Tuning(scheduler={"nr_migrate": "8"}))["systemd"]["units"]
    [command] = [line for line in made["contents"].splitlines() if line.startswith("Exec")]
    assert "PrivateMounts=yes" in made["contents"]
    assert command.index("mount -t debugfs") < command.index("while read")


def test_the_lowest_number_wins_and_matches_are_not_followed() -> None:
    profiles = {"x": "[sysctl]\nvm.swappiness=1", "y": "[sysctl]\nvm.swappiness=2"}
    match = [{"label": "a"}]
    text = tuned(profiles, {"priority": 5, "profile": "z", "match": match}, {"priority": 30, "profile": "x"})
    found = read_tuning({"a": text, "b": tuned({}, {"priority": 20, "profile": "y"})})
    assert found.sysctl == {"vm.swappiness": "2"}
    assert [entry.split()[0] for entry in found.without_effect] == ["recommend", "profile"]


def test_a_pool_without_tuning_has_nothing_of_it() -> None:
    assert read_tuning({}) == Tuning() and Tuning().empty
    assert "recommended" in read_tuning({"a": "kind: Tuned"}).without_effect[0]
    assert "PerformanceProfile" in read_tuning({"a": "kind: PerformanceProfile"}).without_effect[0]


def test_settings_stay_settings() -> None:
    """A name or a value never becomes another line, an option of systemd-sysctl, or a file elsewhere."""
    data = "[sysctl]\n-vm.x=1\n../../etc=1\nvm.*=2\nvm.y=a\x0bb\n[scheduler]\nsched_nr_migrate=1; reboot\n../x=1\n"
    found = read_tuning({"a": tuned({"own": data.replace("\x0b", "\x01")}, {"profile": "own"})})
    assert found.empty and len(found.without_effect) == 6


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod",
        "- 1",
        "kind: Tuned\nspec: 5",
        "kind: Tuned\nspec: {profile: [{name: a}]}",
        "kind: Tuned\nspec: {profile: [{name: a, data: 5}]}",
        "kind: Tuned\nspec: {recommend: [{profile: a, priority: high}]}",
        "kind: Tuned\nspec: {profile: [{name: a, data: 'x=1'}], recommend: [{profile: a}]}",
        'kind: Tuned\nspec: {profile: [{name: a, data: "[main]\\ninclude=a"}], recommend: [{profile: a}]}',
        'kind: Tuned\nspec: {profile: [{name: a, data: "[bootloader]\\ncmdline=init=/x"}], recommend: [{profile: a}]}',
        "a: &a [1]\nb: *a",
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_what_is_no_tuning_is_named(text: str) -> None:
    with pytest.raises(HcpError, match="ConfigMap 'x'"):
        read_tuning({"x": text})
