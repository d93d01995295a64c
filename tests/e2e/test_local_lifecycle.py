"""Coming and going: nothing stays behind, nothing is lost, neighbours are not disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.e2e.local_tools import HCP, Cluster, hcp, namespace, server
from tests.support.eventually import eventually_sync

from hcp.csi.local.names import CLASS
from hcp.local.node.volumes import missing
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control

NS = "check"


@contextmanager
def running(name: str, profile: str, folder: Path, *more: str) -> Iterator[Cluster]:
    hcp("local", "up", "--name", name, "--profile", profile, *more)
    try:
        yield Cluster(name, folder)
    finally:
        if Layout.of(name).root.exists():
            hcp("local", "down", "--name", name, "--purge")


def spec_of(name: str) -> Spec:
    found = specs.load(Layout.of(name))
    assert found is not None
    return found


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def nft_tables() -> str:
    from hcp import payload

    tools = payload.find("node-tools")
    assert tools is not None
    return output(str(tools / "bin" / "nft"), "list", "tables")


def machine(name: str) -> dict[str, object]:
    """Everything of the machine that a cluster touches."""
    addresses = sorted(
        (link["ifname"], entry["local"])
        for link in json.loads(output("ip", "-j", "address"))
        for entry in link["addr_info"]
        if entry["scope"] == "global"
    )
    return {
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "addresses": addresses,
        "routes": sorted(output("ip", "route").splitlines()),
        "rules": nft_tables(),
        "loops": loops(),
        "mounts": sorted(line.split(" ", 2)[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": sorted(str(path) for path in Path("/sys/fs/cgroup").glob("*/hcp-*") if path.name == f"hcp-{name}"),
        "settings": {
            path: Path(path).read_text()
            for path in ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/inotify/max_user_instances")
        },
        "run": sorted(path.name for path in Path("/run").iterdir()),
        "folders": sorted(str(path) for path in Path("/var/lib").iterdir()),
    }


def loops() -> list[str]:
    """Files that stand for a block device, as the volumes of clusters do. A device may go while we look."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            found.append(entry.read_text().strip())
    return sorted(found)


def namespaces_of(pid: int) -> set[str]:
    return {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in ("net", "pid", "mnt")}


def processes_in(spaces: set[str]) -> list[str]:
    found = []
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        try:
            if {str((proc / "ns" / kind).readlink()) for kind in ("net", "pid", "mnt")} & spaces:
                found.append(f"{proc.name} {(proc / 'comm').read_text().strip()}")
        except OSError:
            continue
    return found


def with_disk(name: str, image: str) -> list[dict[str, object]]:
    """A pod with a disk of its own, which is one more block device of the machine."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NS},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "volumeMode": "Block",
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "64Mi"}},
        },
    }
    disk = {"name": "disk", "persistentVolumeClaim": {"claimName": name}}
    devices = {"volumeDevices": [{"name": "disk", "devicePath": "/dev/disk"}]}
    return [claim, server(NS, name, image, container=devices, volumes=[disk])]


@pytest.mark.parametrize("extra", ["", "storage"])
def test_nothing_stays_on_the_machine(tmp_path: Path, extra: str) -> None:
    if extra and (lacking := missing()):
        pytest.skip(f"this kernel lacks what volumes with a bound need: {lacking}")
    name = "e2e-gone"
    before, devices = machine(name), len(loops())
    with running(name, "cluster", tmp_path, *(("--volumes", "4Gi", "--with", extra) if extra else ())) as cluster:
        image = cluster.image()
        cluster.apply(namespace(NS), *(with_disk("one", image) if extra else [server(NS, "one", image)]))
        cluster.wait_pods(NS, "one", seconds=300)
        made = 2 if extra else int(not missing())
        assert len(loops()) == devices + made, "the file of all volumes, and the disk in it"
        found = control.running(Layout.of(name))
        assert found is not None
        spaces = namespaces_of(found.pid)
        assert len(processes_in(spaces)) > 15
        hcp("local", "down", "--name", name, "--purge")
        assert processes_in(spaces) == []
        assert machine(name) == before
        assert not Layout.of(name).root.exists()


def test_two_clusters_do_not_disturb_each_other(tmp_path: Path) -> None:
    with running("e2e-left", "cluster", tmp_path) as left:
        left.apply(namespace(NS), server(NS, "one", left.image()))
        left.wait_pods(NS, "one")
        with running("e2e-right", "cluster", tmp_path) as right:
            assert {"e2e-left", "e2e-right"} <= set(hcp("local", "list", "-o", "name").stdout.split())
            right.apply(namespace(NS), server(NS, "one", right.image()))
            right.wait_pods(NS, "one")
            assert _reaches(left, spec_of("e2e-right").server)
            assert _reaches(right, spec_of("e2e-left").server)
            assert _reaches(right, spec_of("e2e-right").server)
            before = left.get("pods", "-A")["items"]
        assert json.loads(hcp("local", "status", "--name", "e2e-left", "-o", "json").stdout)["well"]
        after = left.get("pods", "-A")["items"]
        assert [_life(pod) for pod in after] == [_life(pod) for pod in before]
        left.kubectl("delete", "pod", "one", "-n", NS)
        left.apply(server(NS, "one", left.image()))
        left.wait_pods(NS, "one")


def _reaches(cluster: Cluster, url: str) -> bool:
    """Whether an API server asks a pod for a certificate."""
    program = (
        "import ssl,sys,urllib.request as u,urllib.error as e\n"
        "try: u.urlopen(sys.argv[1]+'/api', context=ssl._create_unverified_context(), timeout=5)\n"
        "except e.HTTPError as x: print(x.code)"
    )
    return cluster.kubectl("exec", "-n", NS, "one", "--", "python3", "-c", program, url).strip() == "401"


def _life(pod: dict[str, dict[str, object]]) -> tuple[object, ...]:
    statuses = pod["status"].get("containerStatuses")
    assert isinstance(statuses, list)
    return (pod["metadata"]["uid"], *(item["restartCount"] for item in statuses))


def test_killed_supervisor_is_noticed_and_repaired(tmp_path: Path) -> None:
    name = "e2e-killed"
    with running(name, "cluster", tmp_path) as cluster:
        cluster.apply(namespace(NS), {**server(NS, "one", cluster.image())})
        cluster.wait_pods(NS, "one")
        found = control.running(Layout.of(name))
        assert found is not None
        spaces = namespaces_of(found.pid)
        os.kill(found.pid, signal.SIGKILL)
        eventually_sync(lambda: processes_in(spaces) == [], "the end of every process")

        told = hcp("local", "status", "--name", name, check=False)
        assert told.returncode == 1
        assert "was killed or the machine was restarted" in told.stdout

        assert "was stopped from outside" in hcp("local", "up", "--name", name).stderr
        cluster.wait_pods(NS, "one")
        assert cluster.ask(NS, "one", "http://127.0.0.1:8080") == "I am one"

        hcp("local", "down", "--name", name)
        again = hcp("local", "down", "--name", name, check=False)
        assert (again.returncode, "is not up" in again.stderr) == (1, True)
        with _address_on(f"10.88.{spec_of(name).number}.9/24") as link:
            refused = hcp("local", "up", "--name", name, check=False)
            assert refused.returncode == 1
            assert link in refused.stderr
            assert "Traceback" not in refused.stderr
        hcp("local", "up", "--name", name)
        cluster.wait_pods(NS, "one")


@contextmanager
def _address_on(address: str) -> Iterator[str]:
    link = "e2eblock"
    output("ip", "link", "add", link, "type", "bridge")
    try:
        output("ip", "address", "add", address, "dev", link)
        yield link
    finally:
        output("ip", "link", "delete", link)


def test_interrupted_up_continues(tmp_path: Path) -> None:
    name = "e2e-interrupted"
    process = subprocess.Popen(
        # Whoever started the tests in the background made them deaf to it.
        ["env", "--default-signal=INT", str(HCP), "local", "up", "--name", name, "--profile", "cluster"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "kube-apiserver is up" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(60) == 130
        assert "Traceback" not in rest
        with running(name, "cluster", tmp_path) as cluster:
            assert json.loads(hcp("local", "status", "--name", name, "-o", "json").stdout)["well"]
            assert cluster.get("nodes")["items"]
    finally:
        process.kill()
        process.wait()
        process.stderr and process.stderr.close()
        if Layout.of(name).root.exists():
            hcp("local", "down", "--name", name, "--purge")


def test_what_is_not_there_cannot_go_down() -> None:
    refused = hcp("local", "down", "--name", "e2e-nothing", check=False)
    assert refused.returncode == 4
    assert "There is no embedded cluster named 'e2e-nothing'" in refused.stderr


def test_api_profile_needs_no_rights(tmp_path: Path) -> None:
    """All capabilities dropped for good: what is left is an ordinary process."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    without = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
    up = [*without, str(HCP), "local", "up", "--name", "plain", "--profile", "api"]
    done = subprocess.run(up, capture_output=True, text=True, check=False, env=environment, timeout=900)
    try:
        assert done.returncode == 0, done.stderr
        kubeconfig = hcp("local", "kubeconfig", "--name", "plain", env=environment).stdout
        assert "https://127.0.0.1:" in kubeconfig
        status = json.loads(hcp("local", "status", "--name", "plain", "-o", "json", env=environment).stdout)
        assert [line["component"] for line in status["lines"]] == ["supervisor", "etcd", "kube-apiserver"]
    finally:
        hcp("local", "down", "--name", "plain", "--purge", env=environment)
    assert not list((tmp_path / "state").rglob("cluster.json"))


def test_full_disk_is_one_sentence(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    output("mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(small))
    try:
        refused = hcp(
            "local", "up", "--name", "tight", "--profile", "api", check=False, env={"XDG_STATE_HOME": str(small)}
        )
        assert refused.returncode == 1
        assert "GiB free" in refused.stderr
        assert "Traceback" not in refused.stderr
    finally:
        time.sleep(0.1)
        output("umount", str(small))


def test_state_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "hcp" / "local" / "old"
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text('{"format": 99}')
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    for words in (("up",), ("status",), ("kubeconfig",), ("down",)):
        refused = hcp("local", *words, "--name", "old", check=False, env=environment)
        assert refused.returncode == 1
        assert "another version of hcp" in refused.stderr
    assert "unreadable" in hcp("local", "list", env=environment).stdout
    hcp("local", "down", "--name", "old", "--purge", env=environment)
    assert not folder.exists()


@pytest.mark.parametrize("words", [("logs", "nonsense"), ("logs",)])
def test_logs_name_what_there_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    refused = hcp("local", *words, "--name", "missing", check=False, env=environment)
    assert refused.returncode == 4
