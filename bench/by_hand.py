"""The yardstick for node pools: the same disk booted by hand in QEMU, joined to a bare control plane.

Everything is real: Ignition fetches the document from the real bootstrap server, containerd pulls from a real registry
over TLS, the kubelet asks for its certificates. What is missing is what a node pool adds: Cluster API, KubeVirt, CDI.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.support.e2e.own_machine import unpack

from hcp import payload, pki
from hcp.guest.csr import BOOTSTRAP_USER, MachineFacts, approval, concerns_us, judge, node_name
from hcp.ignition.apiproxy import ApiProxy, api_proxy_document
from hcp.ignition.certs import ca_secret, serving_leaf, serving_secret
from hcp.ignition.configdrive import config_drive
from hcp.ignition.document import document, file
from hcp.ignition.machineconfig import joined, machine_config
from hcp.ignition.node import NodeInput, rendered
from hcp.ignition.pointer import pointer
from hcp.ignition.store import document_secret
from hcp.kube import Client, load_config
from hcp.kube.errors import ApiError
from hcp.kube.resources import CSRS, NODES
from hcp.local.addons.emulation import QEMU_PROCESSOR
from hcp.local.host.kvm import probe
from hcp.local.network.ports import free_ports
from hcp.oci.push import Pusher
from hcp.runtime import is_true

# What QEMU's user network calls the machine it runs on, and the address it gives the guest.
HOST, GUEST = "10.0.2.2", "10.0.2.15"
POOL, TARGET, TOKEN = "bench/by-hand", "00000000", "by-hand"
CNI = {
    "cniVersion": "1.0.0",
    "name": "bridge",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.132.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
        }
    ],
}


class Bare:
    """A bare control plane, a registry and a bootstrap server, all on free ports of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        parts = payload.ensure(["etcd", "kubernetes-1.36", "registry", "image-pause", "image-haproxy"], progress=None)
        self.parts = {name: Path(path) for name, path in parts.items()}
        self.etcd, self.peer, self.api, self.registry, self.ignition, self.metrics = free_ports(6)
        self.root, self.signer, self.kubelet = (pki.new_ca(name) for name in ("root", "signer", "kubelet"))
        self.kubeconfig = folder / "admin.kubeconfig"

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def start(self, name: str, *words: str | Path) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running.append(subprocess.Popen([str(word) for word in words], stdout=log, stderr=log))

    def stop(self) -> None:
        for process in reversed(self.running):
            process.kill()
        for process in self.running:
            process.wait()

    def control_plane(self) -> None:
        """etcd, kube-apiserver and kube-controller-manager."""
        bin_dir = self.parts["kubernetes-1.36"] / "bin"
        server = pki.issue(self.root, "kubernetes", dns=["localhost"], ips=["127.0.0.1", HOST, "172.20.0.1"])
        to_kubelet = pki.issue(self.kubelet, "system:kube-apiserver", orgs=["kubernetes"], usage="client")
        admin = pki.issue(self.signer, "admin", orgs=["system:masters"], usage="client")
        key = pki.new_signing_key()
        for name, content in {
            "root.crt": self.root.cert_pem,
            "server.crt": server.cert_pem,
            "server.key": server.key_pem,
            "clients.crt": self.signer.cert_pem + self.kubelet.cert_pem,
            "signer.crt": self.signer.cert_pem,
            "signer.key": self.signer.key_pem,
            "kubelet.crt": to_kubelet.cert_pem,
            "kubelet.key": to_kubelet.key_pem,
            "accounts.key": key,
            "accounts.pub": pki.public_key(key),
        }.items():
            self.write(name, content)
        url = f"https://127.0.0.1:{self.api}"
        config = pki.kubeconfig(url, self.root.cert_pem, admin.cert_pem, admin.key_pem)
        self.kubeconfig.write_text(yaml.safe_dump(config))
        etcd, peer = f"http://127.0.0.1:{self.etcd}", f"http://127.0.0.1:{self.peer}"
        self.start(
            "etcd",
            self.parts["etcd"] / "bin" / "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peer}",
            "--unsafe-no-fsync",
        )
        at = self.folder
        self.start(
            "kube-apiserver",
            bin_dir / "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--secure-port={self.api}",
            f"--tls-cert-file={at / 'server.crt'}",
            f"--tls-private-key-file={at / 'server.key'}",
            f"--client-ca-file={at / 'clients.crt'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=172.31.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={at / 'accounts.pub'}",
            f"--service-account-signing-key-file={at / 'accounts.key'}",
            "--endpoint-reconciler-type=none",
            "--advertise-address=172.20.0.1",
            f"--kubelet-client-certificate={at / 'kubelet.crt'}",
            f"--kubelet-client-key={at / 'kubelet.key'}",
            "--allow-privileged",
        )
        self.start(
            "kube-controller-manager",
            bin_dir / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--cluster-signing-cert-file={at / 'signer.crt'}",
            f"--cluster-signing-key-file={at / 'signer.key'}",
            f"--root-ca-file={at / 'root.crt'}",
            f"--service-account-private-key-file={at / 'accounts.key'}",
            "--leader-elect=false",
        )

    async def images(self) -> dict[str, str]:
        """A registry with the two images a node needs before it is Ready."""
        leaf = pki.issue(self.root, "registry", ips=[HOST, "127.0.0.1"])
        tls = {
            "certificate": str(self.write("registry.crt", leaf.cert_pem)),
            "key": str(self.write("registry.key", leaf.key_pem)),
        }
        config = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "registry")}},
            "http": {"addr": f"0.0.0.0:{self.registry}", "tls": tls},
        }
        path = self.write("registry.yaml", yaml.safe_dump(config).encode())
        self.start("registry", self.parts["registry"] / "bin" / "registry", "serve", path)
        await asyncio.sleep(2)
        found = {}
        async with Pusher(f"https://127.0.0.1:{self.registry}", ca_pem=self.root.cert_pem) as pusher:
            for name in ("pause", "haproxy"):
                digest = await pusher.push(self.parts[f"image-{name}"] / "image", f"hcp/{name}")
                found[name] = f"{HOST}:{self.registry}/hcp/{name}@{digest}"
        return found

    async def publish(self, client: Client, images: dict[str, str]) -> str:
        """The document on a real bootstrap server; gives the pointer for the VMs."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": BOOTSTRAP_USER}
        await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hypershift"}})
        await client.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "bootstrap"},
                "roleRef": role,
                "subjects": [subject],
            }
        )
        boot = pki.issue(self.signer, BOOTSTRAP_USER, usage="client")
        url = f"https://{HOST}:{self.api}"
        proxy = ApiProxy("172.20.0.1", 6443, HOST, self.api, images["haproxy"])
        network = document(files=[file("/etc/cni/net.d/10-bridge.conflist", json.dumps(CNI))])
        parts = {"20-apiserver-haproxy": api_proxy_document(proxy), "50-network": network}
        body = rendered(
            NodeInput(
                raw_config=joined(yaml.safe_dump(machine_config(name, part)) for name, part in parts.items()),
                bootstrap_kubeconfig=yaml.safe_dump(
                    pki.kubeconfig(url, self.root.cert_pem, boot.cert_pem, boot.key_pem)
                ),
                kubelet_client_ca=self.kubelet.cert_pem.decode(),
                service_network=["172.31.0.0/16"],
                pause_image=images["pause"],
                registry_authorities={f"{HOST}:{self.registry}": self.root.cert_pem.decode()},
            )
        )
        authority = pki.new_ca("ignition-root-ca")
        leaf = pki.issue_leaf(authority, serving_leaf([HOST]))
        await client.apply(ca_secret(authority))
        await client.apply(serving_secret(leaf, authority.cert_pem))
        await client.apply(document_secret("bench", POOL, TARGET, token=TOKEN, old_token="", payload=body))
        words = ("ignition-server", "run", f"--kubeconfig={self.kubeconfig}")
        ports = (f"--port={self.ignition}", f"--metrics-port={self.metrics}")
        self.start("ignition-server", Path(sys.executable).with_name("hcp"), *words, *ports)
        return pointer(f"{HOST}:{self.ignition}", authority.cert_pem, TOKEN, POOL, TARGET)

    def boot(self, number: int, root: Path, user_data: str, memory: int) -> str:
        """One VM: its disk copied to raw as an import does, a config drive, QEMU."""
        name = f"by-hand-{number}"
        raw, iso = f"/{name}.raw", f"/{name}.iso"
        inside = ("chroot", str(root))
        subprocess.run([*inside, "qemu-img", "convert", "-O", "raw", "/disk/disk.qcow2", raw], check=True)
        subprocess.run([*inside, "qemu-img", "resize", "-q", "-f", "raw", raw, "8G"], check=True)
        (root / iso[1:]).write_bytes(config_drive(user_data, name))
        kvm, _ = probe()
        accelerator = ["-accel", "kvm" if kvm else "tcg", "-cpu", "max" if kvm else QEMU_PROCESSOR]
        self.start(
            name,
            *inside,
            "qemu-system-x86_64",
            *accelerator,
            *("-smp", "1", "-m", str(memory), "-display", "none", "-serial", "null"),
            *("-drive", f"file={raw},if=virtio,format=raw"),
            *("-drive", f"file={iso},if=virtio,format=raw,readonly=on"),
            *("-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n"),
        )
        return name


@contextlib.contextmanager
def _hypervisor(folder: Path) -> Iterator[Path]:
    """A root file system with the payload's own QEMU and the disk of the release: nothing has to be installed here."""
    root = folder / "qemu"
    unpack("rootfs-virt", root)
    unpack("node-disk-1.36", root, "disk/disk.qcow2")
    os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    yield root


async def _answer(client: Client, names: set[str]) -> None:
    for request in await client.list(CSRS):
        name = node_name(request)
        if not concerns_us(request) or name not in names:
            continue
        verdict = judge(request, MachineFacts(name, POOL, True, frozenset({GUEST}), False))
        if verdict.approve:
            now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            body: dict[str, Any] = {
                **request,
                "apiVersion": "certificates.k8s.io/v1",
                "kind": "CertificateSigningRequest",
                "status": {"conditions": [approval(verdict, now)]},
            }
            await client.replace(body, subresource="approval")


def ready(node: dict[str, Any]) -> bool:
    """Whether the node says it can run pods."""
    return is_true(node["status"].get("conditions"), "Ready")


async def by_hand(count: int, folder: Path, memory: int = 2048) -> float:
    """Seconds until ``count`` VMs booted at once are all Ready nodes, copying their disks included."""
    bare = Bare(folder)
    try:
        bare.control_plane()
        images = await bare.images()
        async with Client(load_config(bare.kubeconfig)) as client:
            while True:
                with contextlib.suppress(ApiError):
                    await client.raw_text("GET", "/readyz")
                    break
                await asyncio.sleep(0.5)
            user_data = await bare.publish(client, images)
            with _hypervisor(folder) as root:
                began = time.monotonic()
                booting = [asyncio.to_thread(bare.boot, n, root, user_data, memory) for n in range(count)]
                names = set(await asyncio.gather(*booting))
                while sum(ready(node) for node in await client.list(NODES)) < count:
                    await _answer(client, names)
                    await asyncio.sleep(0.5)
                return time.monotonic() - began
    finally:
        bare.stop()
