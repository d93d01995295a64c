"""What nodes do for one hosted cluster: etcd, kube-apiserver and kube-controller-manager run
as their pod templates say, and roll with them.

The published address is a small forwarder, as a load balancer is: a new API server starts beside the old one and takes
over when it is ready; the old one is asked to end as a kubelet does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.api_server import free_port

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import NotFound

Object = dict[str, Any]
log = logging.getLogger(__name__)
# No kubelet runs pods or reports a node: what these say of them would undo what tests say, some time later.
BY_HAND = (
    "-daemonset-controller,-deployment-controller,-replicaset-controller,-statefulset-controller,"
    "-node-lifecycle-controller,-taint-eviction-controller"
)


class HostedPods(s.HostedProcesses):
    """Follows the templates until stopped."""

    def __init__(self, directory: Path, bin_dir: Path, client: Client, ns: str, port: int) -> None:
        super().__init__(directory, bin_dir)
        self._client = client
        self._ns = ns
        self.port = port
        self._etcd_port, self._peer_port, self._metrics_port = free_port(), free_port(), free_port()
        self._target = 0
        self._generation = 0
        self._etcd: subprocess.Popen[bytes] | None = None
        self._api: subprocess.Popen[bytes] | None = None
        self._manager: subprocess.Popen[bytes] | None = None
        self._seen: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self.rolls: list[str] = []
        # API servers whose image has this in its name do not come up.
        self.unpullable: str | None = None

    @property
    def etcd_url(self) -> str:
        return f"https://127.0.0.1:{self._etcd_port}"

    @property
    def api_port(self) -> int:
        """Where the API server itself listens, on all addresses."""
        return self._target

    @property
    def api_folder(self) -> Path:
        """Where the API server that runs has its volumes."""
        return self._directory / f"api-{self._generation}" / "kube-apiserver"

    async def begin(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self._task = asyncio.create_task(self._follow())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            found = (await asyncio.gather(self._task, return_exceptions=True))[0]
            assert isinstance(found, asyncio.CancelledError), found
        if self._server is not None:
            self._server.close()
        self.stop()

    async def _follow(self) -> None:
        while True:
            try:
                await self._once()
            except NotFound:
                pass  # it comes, or is being deleted
            except HcpError as error:
                log.warning("asked again: %s", error)
            await asyncio.sleep(0.2)

    async def _once(self) -> None:
        etcd = await self._client.get(k.STATEFULSETS, "etcd", self._ns)
        if not etcd["spec"]["replicas"]:
            await self._end_all()
            await self._report()
            return
        if self._changed("etcd", etcd):
            await self._roll_etcd(etcd["spec"]["template"]["spec"])
            self._done("etcd", etcd)
        api = await self._client.get(k.DEPLOYMENTS, "kube-apiserver", self._ns)
        if self._changed("kube-apiserver", api) and not self._stuck(api):
            await self._roll_api(api["spec"]["template"]["spec"])
            self._done("kube-apiserver", api)
        manager = await self._client.get(k.DEPLOYMENTS, "kube-controller-manager", self._ns)
        if self._target and self._changed("kube-controller-manager", manager):
            await self._roll_manager(manager["spec"]["template"]["spec"])
            self._done("kube-controller-manager", manager)
        await self._report()

    def _stuck(self, live: Object) -> bool:
        image = live["spec"]["template"]["spec"]["containers"][0]["image"]
        return self.unpullable is not None and self.unpullable in image

    async def _end_all(self) -> None:
        """Nothing shall run."""
        for process in (self._manager, self._api, self._etcd):
            if process is not None:
                await self._stop(process, 10)
        self._manager = self._api = self._etcd = None
        self._target = 0
        self._seen.clear()

    @property
    def running(self) -> bool:
        return any(process is not None for process in (self._manager, self._api, self._etcd))

    def _changed(self, name: str, live: Object) -> bool:
        return bool(live["spec"]["replicas"]) and self._seen.get(name) != str(live["spec"]["template"])

    def _done(self, name: str, live: Object) -> None:
        if name in self._seen:
            self.rolls.append(name)
        self._seen[name] = str(live["spec"]["template"])

    async def _roll_etcd(self, pod: Object) -> None:
        arguments = await self._materialize(self._client, self._ns, pod)
        changes = {
            "$(POD_NAME)": "etcd-0",
            "https://$(POD_IP):2379,https://localhost:2379": self.etcd_url,
            "$(POD_IP):2380": f"127.0.0.1:{self._peer_port}",
            "$(POD_IP):2382": f"127.0.0.1:{self._metrics_port}",
        }
        if self._etcd is not None:
            await self._stop(self._etcd, pod["terminationGracePeriodSeconds"])
        command = s._changed(arguments, changes)
        self._etcd = await self._begin(command, f"http://127.0.0.1:{self._metrics_port}/readyz")

    async def _roll_api(self, pod: Object) -> None:
        port = free_port()
        self._generation += 1
        home, self._directory = self._directory, self._directory / f"api-{self._generation}"
        try:
            arguments = await self._materialize(self._client, self._ns, pod)
            changes = {"--secure-port=6443": f"--secure-port={port}", "etcd-client:2379": self.etcd_url[8:]}
            fresh = await self._begin(s._changed(arguments, changes), f"https://127.0.0.1:{port}/readyz")
        finally:
            self._directory = home
        old, self._target, self._api = self._api, port, fresh
        if old is not None:
            await self._stop(old, pod["terminationGracePeriodSeconds"])

    @staticmethod
    async def _stop(process: subprocess.Popen[bytes], grace: int) -> None:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    async def _roll_manager(self, pod: Object) -> None:
        """Alone, so it need not wait for the lease of the one before."""
        arguments = await self._materialize(self._client, self._ns, pod)
        kubeconfig = self._directory / "kube-controller-manager/kube-controller-manager-kubeconfig/kubeconfig"
        text = kubeconfig.read_text().replace("https://kube-apiserver:", "https://127.0.0.1:")
        kubeconfig.write_text(text)
        port = free_port()
        changes = {"--secure-port=10257": f"--secure-port={port}", "--leader-elect=true": "--leader-elect=false"}
        changes["--controllers=*"] = f"--controllers=*,{BY_HAND}"
        if self._manager is not None:
            self._manager.kill()
            self._manager.wait()
        self._manager = await self._begin(s._changed(arguments, changes), f"https://127.0.0.1:{port}/healthz")

    async def _report(self) -> None:
        """Statuses, as controllers would write them."""
        await s.report_ready(self._client, self._ns, runs=self._runs)
        etcd = await self._client.get(k.STATEFULSETS, "etcd", self._ns)
        generation, wanted = etcd["metadata"]["generation"], etcd["spec"]["replicas"]
        status = etcd.get("status") or {}
        if self._changed("etcd", etcd):
            return
        if (status.get("observedGeneration"), status.get("updatedReplicas") or 0) != (generation, wanted):
            counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), wanted)
            body = {"status": {**counts, "observedGeneration": generation}}
            await self._client.patch(k.STATEFULSETS, "etcd", self._ns, body, subresource="status")

    def _runs(self, live: Object) -> bool:
        """Never of a template that came while the one before was rolled out."""
        name = live["metadata"]["name"]
        return name not in ("kube-apiserver", "kube-controller-manager") or not self._changed(name, live)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
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
