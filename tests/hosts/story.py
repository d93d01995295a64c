"""What happens on the machine, in order: the README's commands, then the same cluster on a machine that others changed.

Each step is a function of the machine; what it gives is told in the table at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.hosts.machine import Failed, Machine
from tests.hosts.settings import CACHE, OUTSIDE_NAME, OUTSIDE_SAYS, WHEELS
from tests.support.eventually import eventually_sync

HCP = "/opt/hcp/bin/hcp"
# The tour writes its kubeconfigs into the folder it is started in.
_HERE = "cd /root &&"
_KUBECTL = f"{CACHE}/hcp/artifacts/kubernetes-1.36/*/bin/kubectl"
_MANAGEMENT = f"{_HERE} {_KUBECTL} --kubeconfig demo/management.kubeconfig"
_GUEST = f"{_HERE} {_KUBECTL} --kubeconfig demo/demo.kubeconfig"
_CGROUP = "/sys/fs/cgroup/*"
_WITHIN = 900.0
_ASK = (
    "import urllib.request as u; print(u.urlopen(u.Request('http://{name}/'), timeout=20).read().decode(), flush=True)"
)


@dataclass(frozen=True)
class Step:
    name: str
    run: Callable[[Machine], str]


def need(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)


def boot(machine: Machine) -> str:
    machine.comes_up()
    return ""


def facts(machine: Machine) -> str:
    """It is the kind of machine that is asked for."""
    machine.run("echo wait; grep . /etc/os-release; uname -r; free -m; df -h / " + CACHE)
    need(machine.run("stat -fc %T /sys/fs/cgroup").strip() == "cgroup2fs", "cgroup v2 is the machine's only one")
    need(machine.run("cat /proc/1/comm").strip() == "systemd", "systemd is its first process")
    need(machine.run("cat /sys/module/apparmor/parameters/enabled").strip() == "Y", "AppArmor is on")
    profiles = machine.run("cat /sys/kernel/security/apparmor/profiles | wc -l").strip()
    kernel = machine.run("uname -r").strip()
    return f"kernel {kernel}, cgroup v2, systemd, AppArmor with {profiles} profiles"


def install(machine: Machine) -> str:
    machine.run("python3 -m venv /opt/hcp")
    machine.run(f"/opt/hcp/bin/pip install -q --no-index --find-links {WHEELS} hcp")
    return machine.run(f"{HCP} version --client-only").strip()


def tour(machine: Machine) -> str:
    """`make demo NODES=0`, as the README has it: a management cluster, the operator, a hosted control plane."""
    machine.run(f"{_HERE} {HCP} demo --nodes 0 --build")
    return "control plane available"


def hosted_api(machine: Machine) -> str:
    def answers() -> str:
        return machine.run(f"{_GUEST} get namespaces -o name && {_GUEST} version", check=False)

    said = eventually_sync(lambda: "namespace/kube-system" in (text := answers()) and text, "the hosted API", _WITHIN)
    return next((line for line in said.splitlines() if line.startswith("Server Version")), "")


def unified(machine: Machine) -> str:
    """Pods are below the cluster's own cgroup, with limits that the kernel holds and use that the kubelet reads."""
    pods = machine.run(f"find {_CGROUP}/kubepods -path '*pod*' -name memory.max | wc -l").strip()
    need(int(pods) > 0, f"there are cgroups of pods below {_CGROUP}")
    limits = machine.run(f"find {_CGROUP}/kubepods -name memory.max -exec cat {{}} + | grep -v max | sort -n | uniq -c")
    need(limits.strip(), "a container has a limit of memory")
    (node,) = json.loads(machine.run(f"{_MANAGEMENT} get nodes -o json"))["items"]
    name = node["metadata"]["name"]

    def counted() -> list[str]:
        stats = json.loads(machine.run(f"{_MANAGEMENT} get --raw /api/v1/nodes/{name}/proxy/stats/summary"))
        return [pod["podRef"]["name"] for pod in stats["pods"] if pod.get("memory", {}).get("workingSetBytes", 0) > 0]

    known = eventually_sync(lambda: len(found := counted()) > 5 and found, "the kubelet counts memory", _WITHIN)
    return f"{pods} cgroups of pods and containers; the kubelet counts {len(known)} pods"


def outside(machine: Machine) -> str:
    """A pod finds the outside by name and reaches it: its packets are forwarded, and its resolver is a usable one."""
    image = machine.run(
        f"{_MANAGEMENT} get deployment router-default -n openshift-ingress "
        "-o jsonpath='{.spec.template.spec.containers[0].image}'"
    ).strip()
    program = _ASK.format(name=OUTSIDE_NAME)
    asking = f'{_MANAGEMENT} run asks --image={image} --restart=Never --rm -i --quiet -- python3 -c "{program}"'

    def asked() -> bool:
        machine.run(f"{_MANAGEMENT} delete pod asks --ignore-not-found --wait", check=False)
        return OUTSIDE_SAYS in machine.run(asking, check=False)

    eventually_sync(asked, "a pod reaches the outside by its name", _WITHIN)
    return "a pod reached it by name"


def status(machine: Machine) -> str:
    """All is well: the command's own verdict."""

    def well() -> bool:
        return bool(json.loads(machine.run(f"{HCP} local status -o json 2>/dev/null", check=False))["well"])

    eventually_sync(well, "hcp local status says that all is well", _WITHIN)
    machine.run(f"{HCP} local status")
    return "well"


def logged_out(machine: Machine) -> str:
    """The session that brought it up has ended long ago, with all that systemd ends with it; nothing of ours was."""
    machine.run("loginctl list-sessions; systemctl daemon-reload")
    where = machine.run("cat /proc/$(pgrep -xo containerd)/cgroup").strip()
    need(where.endswith("/node"), f"the node's processes have left the session that started them; now: {where}")
    return where


def down(machine: Machine) -> str:
    machine.run(f"{HCP} local down")
    return ""


def up(machine: Machine) -> str:
    machine.run(f"{HCP} local up")
    return ""


def purge(machine: Machine) -> str:
    machine.run(f"{HCP} local down --purge")
    return ""


def denied(machine: Machine) -> str:
    """AppArmor, which was on all the time, kept nothing of ours from anything."""
    found = machine.run("journalctl -k -o cat | grep 'apparmor=\"DENIED\"' || true")
    need(not found.strip(), f"AppArmor denied nothing:\n{found}")
    return "nothing"
