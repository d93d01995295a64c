"""Hosted pods whose etcd may have several members: what the StatefulSet's controller, a kubelet and the volumes do.

Each member is a process of its own with the command line and the environment of its pod, on a volume that lives and
dies with its claim. One that ends is told in the pod's status and started again, as a kubelet does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.api_server import free_port, local_opener
from tests.support.hosted_pods import HostedPods

from hcp.controlplane import etcd
from hcp.controlplane.params import Params
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import NotFound

Object = dict[str, Any]
MOST = 3
# Of the log, what a kubelet tells of a container that failed.
_MESSAGE = 2048


class Place:
    """Where one member runs, whether it does or not."""

    def __init__(self) -> None:
        self.client, self.peer, self.metrics = free_port(), free_port(), free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.pod: str = ""
        self.log = Path()
        self.ready = False
        self.template = ""

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process, self.ready, self.pod = None, False, ""


class MemberPods(HostedPods):
    """Beside them the API server; its etcd is whichever member is ready, as with a Service."""

    def __init__(self, directory: Path, bin_dir: Path, client: Client, ns: str, port: int) -> None:
        super().__init__(directory, bin_dir, client, ns, port)
        self.places = [Place() for _ in range(MOST)]
        self._front: asyncio.Server | None = None
        self._front_port = free_port()
        self._former: dict[int, Object] = {}
        self._opener = local_opener(ssl._create_unverified_context())
        self._counts: Object = {}

    def where(self, _p: Params, index: int) -> str:
        """For the operator: a member's address for clients."""
        return self._client_of(index)

    def peer(self, _p: Params, index: int) -> str:
        """And that for other members."""
        return self._peer_of(index)

    def _client_of(self, index: int) -> str:
        return f"https://127.0.0.1:{self.places[index].client}"

    def _peer_of(self, index: int) -> str:
        return f"https://127.0.0.1:{self.places[index].peer}"

    @property
    def etcd_url(self) -> str:
        return f"https://127.0.0.1:{self._front_port}"

    async def begin(self) -> None:
        self._front = await asyncio.start_server(self._serve, "127.0.0.1", self._front_port)
        await super().begin()

    def stop(self) -> None:
        for place in self.places:
            place.stop()
        if self._front is not None:
            self._front.close()
        super().stop()

    async def lose(self, index: int) -> None:
        """Pod and volume are gone, as a person or a broken disk does it."""
        await self._client.delete(k.PVCS, f"data-etcd-{index}", self._ns)
        await self._client.delete(k.PODS, f"etcd-{index}", self._ns)

    async def claims(self) -> set[str]:
        return {one["metadata"]["name"] for one in await self._client.list(k.PVCS, self._ns)}

    # one round

    async def _once(self) -> None:
        live = await self._client.get(k.STATEFULSETS, "etcd", self._ns)
        for index, place in enumerate(self.places):
            if index < live["spec"]["replicas"]:
                await self._keep(index, place, live["spec"])
            elif place.pod:
                await self._client.delete(k.PODS, f"etcd-{index}", self._ns, missing_ok=True)
                place.stop()
        await self.volumes_go()
        await self._roll(live["spec"])
        await self._count(live)
        api = await self._client.get(k.DEPLOYMENTS, "kube-apiserver", self._ns)
        if self._changed("kube-apiserver", api) and any(place.ready for place in self.places):
            await self._roll_api(api["spec"]["template"]["spec"])
            self._done("kube-apiserver", api)
        await s.report_ready(self._client, self._ns, runs=self._runs, sets=False)

    def _runs(self, live: Object) -> bool:
        return live["metadata"]["name"] != "kube-apiserver" or not self._changed("kube-apiserver", live)

    def _template(self, index: int, spec: Object) -> Object:
        """Pods below the partition keep what they had."""
        partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
        if index >= partition or index not in self._former:
            self._former[index] = spec["template"]
        return self._former[index]

    async def _keep(self, index: int, place: Place, spec: Object) -> None:
        pod = await self._client.get_or_none(k.PODS, f"etcd-{index}", self._ns)
        if pod is None or pod["metadata"]["uid"] != place.pod:
            place.stop()
        if pod is None:
            pod = await self._make(index, self._template(index, spec))
        if not place.pod:
            place.pod, place.template = pod["metadata"]["uid"], str(self._former.get(index) or spec["template"])
            await self._start(index, place, pod)
        assert place.process is not None
        code = place.process.poll()
        if code is None:
            await self._look(index, place)
            return
        place.ready = False
        text = place.log.read_text()[-_MESSAGE:]
        ended = {"terminated": {"exitCode": code or 1, "reason": "Error", "message": text}}
        await self._tell(index, {"waiting": {"reason": "CrashLoopBackOff"}}, ended, ready=False)
        await self._start(index, place, pod, telling=False)

    async def _look(self, index: int, place: Place) -> None:
        def ask() -> bool:
            with (
                contextlib.suppress(OSError),
                self._opener.open(f"http://127.0.0.1:{place.metrics}/readyz", timeout=2) as answer,
            ):
                return bool(answer.status == 200)
            return False

        ready = await asyncio.to_thread(ask)
        if ready != place.ready:
            place.ready = ready
            await self._tell(index, {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, None, ready=ready)

    async def _make(self, index: int, template: Object) -> Object:
        name, labels = f"etcd-{index}", dict(template["metadata"]["labels"])
        claim = f"data-{name}"
        found = await self._client.get_or_none(k.PVCS, claim, self._ns)
        if found is not None and found["metadata"].get("deletionTimestamp"):
            await self._release(claim)
            found = None
        if found is None:
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            meta = {"name": claim, "namespace": self._ns}
            await self._client.create(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
            )
        spec = template["spec"]
        volumes = [*spec["volumes"], {"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        about: Object = {"name": name, "namespace": self._ns, "labels": labels}
        return await self._client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {**spec, "volumes": volumes}}
        )

    async def volumes_go(self) -> None:
        """Claims that are to go do so when no pod has them."""
        for one in await self._client.list(k.PVCS, self._ns):
            name = one["metadata"]["name"]
            if one["metadata"].get("deletionTimestamp") and (
                await self._client.get_or_none(k.PODS, name.removeprefix("data-"), self._ns) is None
            ):
                await self._release(name)

    async def _release(self, claim: str) -> None:
        found = await self._client.get_or_none(k.PVCS, claim, self._ns)
        if found is not None:
            shutil.rmtree(self._volume(found), ignore_errors=True)
            await self._client.patch(k.PVCS, claim, self._ns, {"metadata": {"finalizers": None}})

    def _volume(self, claim: Object) -> Path:
        return self._directory / f"volume-{claim['metadata']['uid']}"

    async def _start(self, index: int, place: Place, pod: Object, *, telling: bool = True) -> None:
        claim = await self._client.get(k.PVCS, f"data-etcd-{index}", self._ns)
        home, self._directory = self._directory, self._directory / f"etcd-{index}"
        try:
            arguments = await self._materialize(self._client, self._ns, pod["spec"])
        finally:
            self._directory = home
        changes = {
            **await self._environment(pod),
            "$(POD_NAME)": f"etcd-{index}",
            str(home / f"etcd-{index}" / "etcd" / "data"): str(self._volume(claim)),
            "https://$(POD_IP):2379,https://localhost:2379": self._client_of(index),
            f"https://etcd-{index}.{etcd.DISCOVERY}.{self._ns}.svc:2379": self._client_of(index),
            "$(POD_IP):2380": f"127.0.0.1:{place.peer}",
            "$(POD_IP):2382": f"127.0.0.1:{place.metrics}",
            **{f"https://etcd-{i}.{etcd.DISCOVERY}.{self._ns}.svc:2380": self._peer_of(i) for i in range(MOST)},
        }
        command = arguments
        for old, new in changes.items():
            command = [word.replace(old, new) for word in command]
        place.log = self._directory / f"etcd-{index}.log"
        with place.log.open("wb") as log:
            program = self._bin_dir / command[0]
            place.process = subprocess.Popen([program, *command[1:]], stdout=log, stderr=log, cwd=self._directory)
        if telling:
            await self._tell(index, {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, None, ready=False)

    async def _environment(self, pod: Object) -> dict[str, str]:
        """Of ConfigMaps, as they are when the container starts."""
        found = {}
        for one in pod["spec"]["containers"][0]["env"]:
            if source := (one.get("valueFrom") or {}).get("configMapKeyRef"):
                live = await self._client.get(k.CONFIGMAPS, source["name"], self._ns)
                found[f"$({one['name']})"] = live["data"][source["key"]]
        return found

    async def _tell(self, index: int, state: Object, last: Object | None, *, ready: bool) -> None:
        status = {"name": "etcd", "image": "x", "imageID": "x", "restartCount": 0, "ready": ready, "state": state}
        if last is not None:
            status["lastState"] = last
        body = {"status": {"phase": "Running", "containerStatuses": [status]}}
        with contextlib.suppress(NotFound):
            await self._client.patch(k.PODS, f"etcd-{index}", self._ns, body, subresource="status")

    async def _roll(self, spec: Object) -> None:
        """One pod at a time, the highest first, while all of those above are ready."""
        for index in reversed(range(spec["replicas"])):
            place = self.places[index]
            if place.template and place.template != str(self._template(index, spec)):
                self.rolls.append(f"etcd-{index}")
                await self._client.delete(k.PODS, f"etcd-{index}", self._ns, missing_ok=True)
                place.stop()
                place.template = ""
                return
            if not place.ready:
                return

    async def _count(self, live: Object) -> None:
        wanted, ready = live["spec"]["replicas"], sum(place.ready for place in self.places)
        counts = {"replicas": wanted, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": wanted}
        counts["observedGeneration"] = live["metadata"]["generation"]
        if counts != self._counts:
            await self._client.patch(k.STATEFULSETS, "etcd", self._ns, {"status": counts}, subresource="status")
            self._counts = counts

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = [place.client for place in self.places if place.ready]
        try:
            there, back = await asyncio.open_connection("127.0.0.1", random.choice(ready) if ready else 1)
        except OSError:
            writer.close()
            return

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, back), pump(there, writer))
