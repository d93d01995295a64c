"""The machine of an embedded cluster is restarted: one `hcp local up` brings all of it back, and all that ran on it.

What a restart takes is taken: every process at once, links, rules, what lies in /run; and the machine says that it is
another boot. Of the machine itself nothing is restarted, so that other clusters on it go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, well
from tests.support.eventually import eventually_sync

from hcp import payload
from hcp.local.host import machine
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import all_nodes
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control

NAME = os.environ.get("HCP_REBOOT_NAME", "e2e-reboot")
HOSTED = "restarted"
WEB = "check"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster", "--nodes", "2")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        folder = tmp_path_factory.mktemp("reboot")
        found = Cluster(NAME, folder)
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
        found.apply(namespace(NS), namespace(WEB))
        create(found, folder, HOSTED)
        second = f"hcp-{NAME}-2"
        found.apply(server(WEB, "web", found.image(), nodeName=second))
        found.wait_pods(WEB, "web")
        available(found, HOSTED)
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def spec() -> Spec:
    found = specs.load(Layout.of(NAME))
    assert found is not None
    return found


def ip(*words: str, check: bool = True) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check).stdout


def nft(*words: str) -> str:
    tools = payload.find("node-tools")
    assert tools is not None
    return subprocess.run([str(tools / "bin" / "nft"), *words], capture_output=True, text=True, check=True).stdout


def power_off(bystander: subprocess.Popen[bytes]) -> list[int]:
    """Everything of the cluster that does not survive a restart goes; gives the processes that ran."""
    layout, found = Layout.of(NAME), spec()
    ended = []
    for node in all_nodes(found):
        its = node.layout(layout)
        running = control.running(its)
        assert running is not None, f"{node.name} is not running"
        os.kill(running.pid, signal.SIGKILL)
        ended.append(running.pid)
        eventually_sync(lambda r=running: control.start_time(r.pid) != r.started, "its end", 120)  # type: ignore[misc]
        # Another boot: the number of the process is that of somebody else by now, who began at the very same tick.
        facts = {"pid": bystander.pid, "started": control.start_time(bystander.pid), "boot": str(uuid.uuid4())}
        its.supervisor.write_text(json.dumps(facts))
    for node in all_nodes(found):
        eventually_sync(lambda n=node: f" {n.link}@" not in ip("link", "show"), "its link is gone", 60)  # type: ignore[misc]
    for family in ("ip", "ip6"):
        table = f"hcp_local_{found.addresses.number}"
        if f"table {family} {table}\n" in nft("list", "tables"):
            nft("delete", "table", family, table)
    # In /run lies what hcp changed of the machine and for which clusters; the others' part is not ours to remove.
    notes = Path("/run/hcp-local.json")
    if notes.exists():
        told = json.loads(notes.read_text())
        told["clusters"] = [one for one in told["clusters"] if one != NAME]
        if told["clusters"]:
            notes.write_text(json.dumps(told))
        else:
            machine.release_settings(NAME)
            assert not notes.exists()
    return ended


def wanted(guest: Guest) -> bool:
    return bool(guest.get("configmap", "kept")["data"] == {"a": "b"})


def test_one_up_brings_everything_back_after_a_restart_of_the_machine(management: Cluster, tmp_path: Path) -> None:
    guest = guest_of(management, tmp_path, HOSTED)
    guest.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    before = {n["metadata"]["name"]: n["metadata"]["uid"] for n in management.get("nodes")["items"]}
    volumes = {v["metadata"]["name"] for v in management.get("pv")["items"]}
    bystander = subprocess.Popen(["sleep", "3600"])
    try:
        power_off(bystander)
        assert hcp("local", "status", "--name", NAME, check=False).returncode == 1
        said = hcp("local", "up", "--name", NAME).stderr
        assert "bringing it back" in said
        assert bystander.poll() is None, "a process of another boot's number was taken for the supervisor"
    finally:
        bystander.kill()
        bystander.wait()
    assert {n["metadata"]["name"]: n["metadata"]["uid"] for n in management.get("nodes")["items"]} == before
    assert {v["metadata"]["name"] for v in management.get("pv")["items"]} == volumes
    management.wait_pods(WEB, "web", seconds=600)
    available(management, HOSTED)
    eventually_sync(lambda: wanted(guest), "what the tenant stored is there", 600)
    guest.kubectl("create", "configmap", "after", "--from-literal=c=d")
    well(NAME)
    assert "nothing had to be done" in hcp("local", "up", "--name", NAME).stdout


def test_nothing_that_is_kept_names_an_address_of_the_machine(management: Cluster) -> None:
    """So that it may have another one after a restart."""
    links = {node.link for node in all_nodes(spec())}
    own = {
        entry["local"]
        for link in json.loads(ip("-j", "address"))
        if link["ifname"] not in links and not link["ifname"].startswith("hcp")
        for entry in link["addr_info"]
        if entry["scope"] == "global"
    }
    layout = Layout.of(NAME)
    # But the name servers of its pods, which are the machine's, and are written anew with every start.
    anew = layout.etc / "node"
    files = [path for path in layout.etc.rglob("*") if path.is_file() and not path.is_relative_to(anew)]
    files.append(layout.spec)
    named = {(address, path.name) for path in files for address in own if address.encode() in path.read_bytes()}
    assert len(files) > 10
    assert named == set()
