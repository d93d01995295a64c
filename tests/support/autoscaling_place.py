"""cluster-autoscaler itself between two real API servers: started as its pod would be, with the rights that it has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from tests.support import crds as crds_support
from tests.support.api_server import ApiServer, account_token, free_port
from tests.support.cluster_api_hands import Hands
from tests.support.definitions import CLUSTER_API, real
from tests.support.eventually import eventually
from tests.support.unit.controlplane import params

from hcp import payload, pki
from hcp.api import names
from hcp.controlplane import autoscaler
from hcp.controlplane.params import Params
from hcp.guest import autoscaling as inside
from hcp.guest.objects import GuestParams
from hcp.install import autoscaling as installed
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.nodepool.machines import DeploymentInput, machine_deployment
from hcp.nodepool.template import TemplateInput, machine_template, machine_template_spec

Object = dict[str, Any]
NS = "clusters-demo"
# Fast, so that a test need not wait: what each means is the autoscaler's own business.
QUICK: Object = {
    "scaleDown": {
        "delayAfterAddSeconds": 0,
        "delayAfterDeleteSeconds": 0,
        "delayAfterFailureSeconds": 0,
        "unneededDurationSeconds": 1,
    }
}
_WRITES = {"create", "update", "patch", "delete"}


class Place:
    """Two clusters, a scheduler, the hands of Cluster API, and the autoscaler."""

    def __init__(self, folder: Path, management: ApiServer, guest: ApiServer, on: Client, within: Client) -> None:
        self._folder, self._management, self._guest = folder, management, guest
        self.management, self.guest = on, within
        self.hands = Hands(on, within, NS, {})
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    async def prepare(self) -> None:
        await crds_support.install(self.management, real(*CLUSTER_API))
        await self.management.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        for made in (*installed.objects(), *autoscaler.account(_params())):
            await self.management.apply(made)
        given = GuestParams(_params(), {}, own_network=True, highly_available=False, autoscaling=True)
        for made in inside.objects(given):
            await self.guest.apply(made)
        self._run("kube-scheduler", *_scheduler(self._guest))
        self.hands.begin()

    async def pool(self, name: str, **spec: Any) -> Object:
        """A pool's MachineDeployment and template, as the operator makes them."""
        compute = {"cores": spec.pop("cores", 4), "memory": "8Gi"}
        kubevirt = {"rootVolume": {"type": "Persistent", "persistent": {"size": "32Gi"}}, "compute": compute}
        platform = {"type": "KubeVirt", "kubevirt": kubevirt}
        made = {"metadata": {"name": name, "namespace": "clusters"}, "spec": {"platform": platform, **spec}}
        made["spec"]["clusterName"] = "demo"
        source = {"registry": {"url": "docker://r.test/disk"}}
        content = machine_template_spec(TemplateInput(name, "demo-x", kubevirt, source))
        template = machine_template(f"{name}-t", NS, f"clusters/{name}", content)
        await self.management.apply(template)
        vm = content["template"]["spec"]["virtualMachineTemplate"]
        live = await self.management.apply(
            machine_deployment(
                DeploymentInput(NS, made, "demo-x", f"{name}-t", "user-data", "1.36.3", False, machine=vm)
            )
        )
        self.hands.pools[name] = made
        return live

    async def start(self, autoscaling: Mapping[str, Any] = QUICK) -> None:
        """With the words of its Deployment; only where the two clusters are is said as a test must."""
        guest, management = self._folder / "guest.kubeconfig", self._folder / "management.kubeconfig"
        guest.write_text(yaml.safe_dump(self._guest_kubeconfig()))
        token = await account_token(self.management, autoscaler.ACCOUNT, NS)
        ca = (self._management.directory / "ca.crt").read_bytes()
        config = pki.kubeconfig(self._management.url, ca, b"", b"")
        config["users"][0]["user"] = {"token": token}
        management.write_text(yaml.safe_dump(config))
        deployment = autoscaler.deployment(_params(), autoscaling, "")
        main = deployment["spec"]["template"]["spec"]["containers"][0]
        words = [one for one in main["command"][1:] if not one.startswith(("--kubeconfig=", "--address="))]
        program = payload.ensure([names.AUTOSCALER])[names.AUTOSCALER] / "bin" / names.AUTOSCALER
        more = (f"--kubeconfig={guest}", f"--cloud-config={management}", f"--address=127.0.0.1:{self._port}")
        env = {**os.environ, **{one["name"]: one["value"] for one in main["env"]}}
        self.process = self._run(program, *words, *more, "--scan-interval=1s", env=env)
        await eventually(self.healthy, "the autoscaler works")

    def _guest_kubeconfig(self) -> Object:
        folder = self._guest.directory
        ca = pki.KeyPair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
        mine = pki.issue_leaf(ca, autoscaler.LEAF.leaf)
        return pki.kubeconfig(self._guest.url, ca.cert_pem, mine.cert_pem, mine.key_pem)

    async def asked(self, path: str) -> str:
        url = f"http://127.0.0.1:{self._port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.text()

    async def healthy(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(self.log()[-3000:])
        return "OK" in await self.asked("/health-check")

    async def rounds(self) -> int:
        """How often it has looked at everything."""
        mark = 'cluster_autoscaler_function_duration_seconds_count{function="main"} '
        lines = (await self.asked("/metrics")).splitlines()
        return int(next((line.removeprefix(mark) for line in lines if line.startswith(mark)), "0"))

    async def looks(self, times: int) -> None:
        end = await self.rounds() + times

        async def looked() -> bool:
            return await self.rounds() >= end

        await eventually(looked, f"{times} more rounds")

    def written(self) -> list[str]:
        """All that it has written, in both clusters, by the servers' own records; how it asks who it is aside."""
        found = []
        for server in (self._management, self._guest):
            for line in (server.directory / "audit.log").read_text().splitlines():
                event = json.loads(line)
                if event["verb"] in _WRITES and "cluster-autoscaler" in event["user"]["username"]:
                    found.append(f"{event['verb']} {event['requestURI'].partition('?')[0]}")
        return found

    def refused(self) -> list[str]:
        """What it asked for and had no right to."""
        found = set()
        for server in (self._management, self._guest):
            for line in (server.directory / "audit.log").read_text().splitlines():
                event = json.loads(line)
                if (
                    event.get("responseStatus", {}).get("code") == 403
                    and "cluster-autoscaler" in event["user"]["username"]
                ):
                    found.add(f"{event['verb']} {event['requestURI'].partition('?')[0]}")
        return sorted(found)

    def memory(self) -> tuple[int, int]:
        """Megabytes of its own, and of the file of the program, which all on a node share and the kernel may drop."""
        assert self.process is not None
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        own, file = (int(text.partition(f"{word}:")[2].split()[0]) // 1024 for word in ("RssAnon", "RssFile"))
        return own, file

    def log(self) -> str:
        return (self._folder / f"{names.AUTOSCALER}.log").read_text(errors="replace")

    async def size(self, pool: str) -> int:
        return int((await self.management.get(k.MACHINEDEPLOYMENTS, pool, NS))["spec"]["replicas"])

    async def pods(self, count: int, cpu: str = "500m", prefix: str = "p", **spec: Any) -> None:
        container = {"name": "c", "image": "r.test/c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        for number in range(count):
            metadata = {"name": f"{prefix}-{number}", "namespace": "default"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
            await self.guest.create(pod)

    async def running(self) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in await self.guest.list(k.PODS, "default"))

    async def no_pods(self) -> None:
        for pod in await self.guest.list(k.PODS, "default"):
            await self.guest.delete(k.PODS, pod["metadata"]["name"], "default", grace=0, missing_ok=True)

    def _run(self, program: str | Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        path = program if isinstance(program, Path) else self._guest.bin_dir / program
        with (self._folder / f"{path.name}.log").open("ab") as log:
            made = subprocess.Popen([path, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        self._processes.append(made)
        return made

    async def end(self) -> None:
        await self.hands.end()
        for process in self._processes:
            process.kill()
            process.wait()


def _params() -> Params:
    return replace(params(), images={**params().images, names.AUTOSCALER: "r.test/cluster-autoscaler"})


def _scheduler(server: ApiServer) -> list[str]:
    config = f"--kubeconfig={server.kubeconfig}"
    return [config, "--leader-elect=false", f"--secure-port={free_port()}", "--bind-address=127.0.0.1"]


def _audited(folder: Path, bin_dir: Path) -> ApiServer:
    """One that writes down who asked for what."""
    folder.mkdir()
    made = ApiServer(folder, bin_dir)
    made.start_etcd()
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    policy["omitStages"] = ["RequestReceived"]
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    made.start_api(f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}")
    return made


@asynccontextmanager
async def place(folder: Path, bin_dir: Path) -> AsyncIterator[Place]:
    management, guest = _audited(folder / "management", bin_dir), _audited(folder / "guest", bin_dir)
    try:
        async with Client(load_config(management.kubeconfig)) as on, Client(load_config(guest.kubeconfig)) as within:
            made = Place(folder, management, guest, on, within)
            try:
                await made.prepare()
                yield made
            finally:
                await made.end()
    finally:
        management.stop()
        guest.stop()
