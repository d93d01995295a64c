"""Kamaji on an embedded management cluster, for `bench/peers.py`: installed as its chart does, with our own builds.

What differs from the chart: one etcd instead of three (ours has one per cluster too), no limits on the manager (the
chart's 100 MiB are less than it takes for ten control planes), no telemetry. Control planes run the programs of our
release: what starts is the same on both sides, under a version that Kamaji takes.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import ipaddress
import os
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hcp import payload, pki
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.resources import Resource
from hcp.local.addons import images
from hcp.local.state.layout import Layout
from hcp.oci.push import Pusher
from hcp.payload.image import REGISTRY

Object = dict[str, Any]
SYSTEM, TENANTS = "kamaji-system", "kamaji-tenants"
# The newest version that this Kamaji makes control planes of.
VERSION = "v1.30.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
GROUP = "kamaji.clastix.io"
CONTROL_PLANES = Resource(GROUP, "v1alpha1", "tenantcontrolplanes", "TenantControlPlane")
DATASTORES = Resource(GROUP, "v1alpha1", "datastores", "DataStore", namespaced=False)
_WEBHOOKS = "kamaji-webhook-service"
_ETCD = f"etcd.{SYSTEM}.svc.cluster.local"


class Authority:
    """Kamaji reads RSA keys in PKCS 1 only, which `hcp.pki` does not make."""

    def __init__(self, name: str) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self.cert = _pem(builder.sign(self._key, hashes.SHA256()))
        self.key = _key(self._key)

    def _builder(self, subject: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - dt.timedelta(minutes=5),
            not_valid_after=now + dt.timedelta(days=30),
        )

    def issue(self, name: str, dns: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
        """Certificate and key, for both ends of a connection."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        names: list[x509.GeneralName] = [x509.DNSName(each) for each in dns]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(usages, critical=False)
        return _pem(builder.sign(self._key, hashes.SHA256())), _key(key)


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _key(key: rsa.RSAPrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)


def _secret(name: str, content: dict[str, bytes]) -> Object:
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": SYSTEM}, "data": data}


def control_plane(name: str) -> Object:
    """One tenant as the chart's users write it, without add-ons: ours are counted without nodes too."""
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TenantControlPlane",
        "metadata": {"name": name, "namespace": TENANTS},
        "spec": {
            "controlPlane": {
                "deployment": {"replicas": 1, "registrySettings": {"registry": f"{REGISTRY}/kamaji"}},
                "service": {"serviceType": "LoadBalancer"},
            },
            "kubernetes": {"version": VERSION, "kubelet": {"cgroupfs": "systemd"}},
            "networkProfile": {"port": 6443},
        },
    }


def _etcd(image: str) -> list[Object]:
    """One member on a volume of the default class, with TLS and users."""
    files = "/etc/etcd/pki"
    flags = (
        *("--name=etcd-0", "--data-dir=/var/run/etcd/data", f"--advertise-client-urls=https://{_ETCD}:2379"),
        *("--listen-client-urls=https://0.0.0.0:2379", "--client-cert-auth=true"),
        *(f"--trusted-ca-file={files}/ca.crt", f"--cert-file={files}/tls.crt", f"--key-file={files}/tls.key"),
        *("--listen-metrics-urls=http://0.0.0.0:2381", "--quota-backend-bytes=8589934592"),
        *("--auto-compaction-mode=periodic", "--auto-compaction-retention=5m", "--snapshot-count=10000"),
    )
    container = {
        "name": "etcd",
        "image": image,
        "args": list(flags),
        "readinessProbe": {"httpGet": {"path": "/health?serializable=true", "port": 2381}, "periodSeconds": 1},
        "volumeMounts": [{"name": "data", "mountPath": "/var/run/etcd"}, {"name": "pki", "mountPath": files}],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}},
    }
    pod = {
        "securityContext": {"fsGroup": 65532},
        "containers": [container],
        "volumes": [{"name": "pki", "secret": {"secretName": "etcd"}}],
    }
    labels = {"app": "etcd"}
    spec = {
        "serviceName": "etcd",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
        "volumeClaimTemplates": [claim],
    }
    return [_service("etcd", labels, 2379, 2379), _namespaced("apps/v1", "StatefulSet", "etcd", {"spec": spec})]


def _users(image: str) -> Object:
    """Turns on etcd's users: its programs come without a shell, so each command is a container of its own."""
    files = "/etc/etcd/pki"
    access = {"ETCDCTL_ENDPOINTS": f"https://{_ETCD}:2379", "ETCDCTL_CACERT": f"{files}/ca.crt"}
    access |= {"ETCDCTL_CERT": f"{files}/root.crt", "ETCDCTL_KEY": f"{files}/root.key"}
    commands = ("user add root --no-password", "role add root", "user grant-role root root", "auth enable")
    steps = [
        {
            "name": f"step-{number}",
            "image": image,
            "command": ["etcdctl", *command.split()],
            "env": [{"name": name, "value": value} for name, value in access.items()],
            "volumeMounts": [{"name": "pki", "mountPath": files}],
        }
        for number, command in enumerate(commands)
    ]
    spec = {
        "restartPolicy": "Never",
        "initContainers": steps[:-1],
        "containers": steps[-1:],
        "volumes": [{"name": "pki", "secret": {"secretName": "etcd"}}],
    }
    return _namespaced("v1", "Pod", "etcd-users", {"spec": spec})


def _manager(image: str, workers: int) -> list[Object]:
    labels = {"app": "kamaji"}
    flags = ["--leader-elect", "--datastore=default", "--disable-telemetry", "--tmp-directory=/tmp/kamaji"]
    flags += [f"--max-concurrent-tcp-reconciles={workers}"]
    fields = {"POD_NAMESPACE": "metadata.namespace", "SERVICE_ACCOUNT": "spec.serviceAccountName"}
    container = {
        "name": "manager",
        "image": image,
        "args": ["manager", *flags],
        "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
        ],
    }
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]
    volumes.append({"name": "cert", "secret": {"secretName": "webhooks"}})
    pod = {"serviceAccountName": "kamaji", "containers": [container], "volumes": volumes}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kamaji"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "kamaji", "namespace": SYSTEM}],
    }
    account = _namespaced("v1", "ServiceAccount", "kamaji", {})
    deployment = _namespaced("apps/v1", "Deployment", "kamaji", {"spec": spec})
    return [account, binding, _service(_WEBHOOKS, labels, 443, 9443), deployment]


def _webhooks(ca: bytes) -> list[Object]:
    """The two that every control plane passes through."""

    def one(kind: str, name: str, path: str) -> Object:
        service = {
            "name": _WEBHOOKS,
            "namespace": SYSTEM,
            "path": f"/{path}-kamaji-clastix-io-v1alpha1-tenantcontrolplane",
        }
        rule = {
            "apiGroups": [GROUP],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["tenantcontrolplanes"],
        }
        hook = {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": service, "caBundle": base64.b64encode(ca).decode()},
            "rules": [rule],
            "sideEffects": "None",
        }
        version = "admissionregistration.k8s.io/v1"
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "kamaji"}, "webhooks": [hook]}

    return [
        one("MutatingWebhookConfiguration", "mtenantcontrolplane.kb.io", "mutate"),
        one("ValidatingWebhookConfiguration", "vtenantcontrolplane.kb.io", "validate"),
    ]


def _namespaced(version: str, kind: str, name: str, rest: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": SYSTEM}, **rest}


def _service(name: str, labels: dict[str, str], port: int, target: int) -> Object:
    spec = {"selector": labels, "ports": [{"port": port, "targetPort": target}]}
    return _namespaced("v1", "Service", name, {"spec": spec})


def _datastore(authority: Authority, client: tuple[bytes, bytes]) -> Object:
    def content(value: bytes) -> Object:
        return {"content": base64.b64encode(value).decode()}

    tls = {
        "certificateAuthority": {"certificate": content(authority.cert), "privateKey": content(authority.key)},
        "clientCertificate": {"certificate": content(client[0]), "privateKey": content(client[1])},
    }
    spec = {"driver": "etcd", "endpoints": [f"{_ETCD}:2379"], "tlsConfig": tls}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "DataStore", "metadata": {"name": "default"}, "spec": spec}


async def _push(cluster: str) -> dict[str, str]:
    """Its image, and our programs under the names that it gives them."""
    names = ["image-kamaji", "image-etcd", *(f"image-{program}-1.36" for program in PROGRAMS)]
    parts = {name: Path(path) for name, path in payload.ensure(names).items()}
    layout = Layout.of(cluster)
    await images.push(layout, parts.values(), print)
    folder = os.open(layout.run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        async with Pusher(f"http://{REGISTRY}", socket=f"/proc/self/fd/{folder}/{layout.push_socket.name}") as pusher:
            for program in PROGRAMS:
                await pusher.push(parts[f"image-{program}-1.36"] / "image", f"kamaji/{program}", tag=VERSION)
    finally:
        os.close(folder)
    return images.references(parts)


async def install(client: Client, cluster: str, workers: int) -> None:
    """Until its manager is ready to take control planes."""
    found = await _push(cluster)
    for namespace in (SYSTEM, TENANTS):
        await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    definitions = payload.ensure(["kamaji-definitions"])["kamaji-definitions"]
    for path in sorted((Path(definitions) / "manifests" / "crds").glob("*.yaml")):
        await client.apply(yaml.safe_load(path.read_text()))
    authority, webhooks = Authority("etcd"), pki.new_ca("kamaji")
    server, root = authority.issue("etcd", (_ETCD, f"etcd.{SYSTEM}.svc", "localhost")), authority.issue("root")
    pairs = {"tls.crt": server[0], "tls.key": server[1], "root.crt": root[0], "root.key": root[1]}
    await client.apply(_secret("etcd", {"ca.crt": authority.cert, **pairs}))
    names = (f"{_WEBHOOKS}.{SYSTEM}.svc", f"{_WEBHOOKS}.{SYSTEM}.svc.cluster.local")
    leaf = pki.issue(webhooks, _WEBHOOKS, dns=names)
    serving = {"tls.crt": leaf.cert_pem, "tls.key": leaf.key_pem, "ca.crt": webhooks.cert_pem}
    await client.apply(_secret("webhooks", serving))
    for each in _etcd(found["etcd"]):
        await client.apply(each)
    await _until_ready(client, "app=etcd")
    await client.apply(_users(found["etcd"]))
    await _until_done(client, "etcd-users")
    while not await client.has(DATASTORES):
        await asyncio.sleep(0.5)
    await client.apply(_datastore(authority, root))
    for each in _manager(found["kamaji"], workers):
        await client.apply(each)
    await _until_ready(client, "app=kamaji")
    for each in _webhooks(webhooks.cert_pem):
        await client.apply(each)


async def _until_ready(client: Client, labels: str) -> None:
    async with asyncio.timeout(300):
        while True:
            pods = await client.list(k.PODS, SYSTEM, labels=labels)
            conditions = [c for pod in pods for c in (pod.get("status") or {}).get("conditions") or ()]
            if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                return
            await asyncio.sleep(0.5)


async def _until_done(client: Client, name: str) -> None:
    async with asyncio.timeout(300):
        while True:
            phase = (await client.get(k.PODS, name, SYSTEM))["status"].get("phase")
            if phase == "Succeeded":
                return
            if phase == "Failed":
                raise SystemExit(f"the pod {SYSTEM}/{name} failed: look at its logs")
            await asyncio.sleep(0.5)


async def remove(client: Client) -> None:
    """All of it, control planes first."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        plural = f"{kind.lower()}s"
        hook = Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
        await client.delete(hook, "kamaji", missing_ok=True)
    for namespace in (TENANTS, SYSTEM):
        await client.delete(k.NAMESPACES, namespace, missing_ok=True)
    await client.delete(DATASTORES, "default", missing_ok=True)
