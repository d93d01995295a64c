"""Settings of a running cluster (`configuration`): each is followed, and rolls what it must and nothing else."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import mentions, rests, says, told
from tests.support.hosted_pods import HostedPods
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp import pki
from hcp.kube import Client
from hcp.kube import resources as k

Object = dict[str, Any]
HOST = "api.example.test"


@pytest.fixture
async def image(registry: Any, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3")


async def configure(admin: Client, **configuration: Any) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"configuration": configuration}})


async def give(admin: Client, kind: str, name: str, data: dict[str, bytes]) -> None:
    meta = {"name": name, "namespace": "clusters"}
    texts = {key: base64.b64encode(value).decode() for key, value in data.items()}
    body: Object = {"data": texts}
    if kind == "ConfigMap":
        body = {"data": {key: value.decode() for key, value in data.items()}}
    await admin.apply({"apiVersion": "v1", "kind": kind, "metadata": meta, **body})


def signed(ca: pki.KeyPair) -> dict[str, bytes]:
    leaf = pki.issue(ca, HOST, dns=(HOST,), usage="server")
    return {"tls.crt": leaf.cert_pem, "tls.key": leaf.key_pem}


async def generations(admin: Client) -> dict[str, int]:
    live = [*await admin.list(k.DEPLOYMENTS, NS), *await admin.list(k.STATEFULSETS, NS)]
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in live}


def moved(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name in after if after[name] != before.get(name)}


class Caller:
    """Somebody who calls the API under a name, and looks at the certificate."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port, self._folder = port, folder

    def _get(self, ca: bytes, host: str, login: pki.KeyPair | None, most: ssl.TLSVersion | None) -> tuple[int, str]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ca.decode())
        if most is not None:
            context.maximum_version = most
        if login is not None:
            (self._folder / "login.crt").write_bytes(login.cert_pem)
            (self._folder / "login.key").write_bytes(login.key_pem)
            context.load_cert_chain(self._folder / "login.crt", self._folder / "login.key")

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                http.client.HTTPConnection.connect(self)
                self.sock = context.wrap_socket(self.sock, server_hostname=host)

        connection = Connection("127.0.0.1", self._port, timeout=30, context=context)
        try:
            connection.request("GET", "/api/v1/nodes", headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    async def get(
        self,
        ca: bytes,
        host: str = HOST,
        login: pki.KeyPair | None = None,
        most: ssl.TLSVersion | None = None,
    ) -> tuple[int, str]:
        return await asyncio.to_thread(self._get, ca, host, login, most)


async def root_ca(admin: Client) -> bytes:
    found = await admin.get(k.CONFIGMAPS, "root-ca", NS)
    return str(found["data"]["ca.crt"]).encode()


async def refresh(admin: Client, pods: HostedPods, volume: str, kind: Any) -> None:
    """What a kubelet does from time to time."""
    live = await admin.get(kind, volume, NS)
    folder = pods.api_folder / volume
    for key, value in (live.get("data") or {}).items():
        fresh = folder / f"{key}.fresh"
        fresh.write_bytes(base64.b64decode(value) if kind is k.SECRETS else value.encode())
        fresh.replace(folder / key)


async def test_certificates_of_the_owners_are_shown_for_their_names_and_renewed_without_a_roll(
    admin: Client, pods: HostedPods, tmp_path: Path
) -> None:
    caller, ours, first = Caller(pods.port, tmp_path), pki.new_ca("ours"), pki.new_ca("first")
    before = await generations(admin)
    named = {"names": [HOST], "servingCertificate": {"name": "shown"}}
    await configure(admin, apiServer={"servingCerts": {"namedCertificates": [named]}})
    await eventually(
        lambda: mentions(admin, NAME, "ValidConfiguration", "clusters/shown does not exist"), "it is missing"
    )
    assert await generations(admin) == before, "a file that is not there would keep the API server from starting"

    await give(admin, "Secret", "shown", signed(first))

    async def rolled() -> bool:
        return moved(before, await generations(admin)) == {"kube-apiserver"}

    await eventually(rolled, "the API server gets it, and nobody else")
    await eventually(lambda: says(admin, NAME, "ValidConfiguration", "True"), "nothing is wrong any more")

    async def shown() -> bool:
        return (await caller.get(first.cert_pem))[0] in (401, 403)

    await eventually(shown, "the API server shows it for its name")

    async def its_own() -> bool:
        return (await caller.get(await root_ca(admin), "kubernetes.default.svc"))[0] in (401, 403)

    await eventually(its_own, "and its own for others")

    after = await generations(admin)
    await give(admin, "Secret", "shown", signed(ours))

    async def renewed() -> bool:
        await refresh(admin, pods, "kas-named-certs", k.SECRETS)
        return (await caller.get(ours.cert_pem))[0] in (401, 403)

    await eventually(renewed, "another certificate is shown")
    assert await generations(admin) == after, "without anything being rolled"

    taken = {"names": ["kubernetes.default.svc"], "servingCertificate": {"name": "shown"}}
    await configure(admin, apiServer={"servingCerts": {"namedCertificates": [named, taken]}})
    await eventually(
        lambda: mentions(admin, NAME, "ValidConfiguration", "kubernetes.default.svc"), "that one is refused"
    )
    assert await generations(admin) == after
    await eventually(lambda: rests(admin, NAME), "nothing is written while nothing changes")

    await configure(admin, apiServer=None)

    async def forgotten() -> bool:
        return await admin.get_or_none(k.SECRETS, "kas-named-certs", NS) is None

    await eventually(forgotten, "keys of the owner's do not stay")

    async def not_shown() -> bool:
        try:
            await caller.get(ours.cert_pem)
        except ssl.SSLCertVerificationError:
            return True
        return False

    await eventually(not_shown, "an API server that was started without it shows its own")


async def test_further_authorities_for_clients_are_believed_without_a_roll(
    admin: Client, pods: HostedPods, tmp_path: Path
) -> None:
    caller, theirs, before = Caller(pods.port, tmp_path), pki.new_ca("theirs"), await generations(admin)
    carol = pki.issue(theirs, "carol", usage="client")
    await configure(admin, apiServer={"clientCA": {"name": "clients"}})
    await eventually(lambda: mentions(admin, NAME, "ValidConfiguration", "clusters/clients"), "it is missing")
    await give(admin, "ConfigMap", "clients", {"ca-bundle.crt": b"no certificate"})
    await eventually(lambda: mentions(admin, NAME, "ValidConfiguration", "holds no certificates"), "it is of no use")
    await give(admin, "ConfigMap", "clients", {"ca-bundle.crt": theirs.cert_pem})
    await eventually(lambda: says(admin, NAME, "ValidConfiguration", "True"), "it is good")

    async def known() -> bool:
        await refresh(admin, pods, "client-ca", k.CONFIGMAPS)
        status, text = await caller.get(await root_ca(admin), "kubernetes.default.svc", carol)
        return status == 403 and '\\"carol\\"' in text

    await eventually(known, "who has such a certificate is known by name")
    await configure(admin, apiServer={"clientCA": None})

    async def forgotten() -> bool:
        await refresh(admin, pods, "client-ca", k.CONFIGMAPS)
        return (await caller.get(await root_ca(admin), "kubernetes.default.svc", carol))[0] == 401

    await eventually(forgotten, "and a stranger again without it")
    assert await generations(admin) == before


async def test_a_tls_profile_rolls_who_speaks_tls_and_a_wrong_one_nobody(
    admin: Client, pods: HostedPods, tmp_path: Path
) -> None:
    caller, before = Caller(pods.port, tmp_path), await generations(admin)
    name, ca = "kubernetes.default.svc", await root_ca(admin)
    assert (await caller.get(ca, name, most=ssl.TLSVersion.TLSv1_2))[0] in (401, 403)
    custom = {"ciphers": ["ECDHE-RSA-AES256-GCM-SHA384"], "minTLSVersion": "VersionTLS12"}
    await configure(admin, apiServer={"tlsSecurityProfile": {"type": "Custom", "custom": custom}})
    await eventually(lambda: mentions(admin, NAME, "ValidConfiguration", "HTTP/2"), "it would not start with that")
    assert await generations(admin) == before
    await configure(admin, apiServer={"tlsSecurityProfile": {"type": "Modern", "custom": None}})

    async def modern() -> bool:
        with pytest.raises(ssl.SSLError):
            await caller.get(ca, name, most=ssl.TLSVersion.TLSv1_2)
        return (await caller.get(ca, name))[0] in (401, 403)

    async def refused() -> bool:
        try:
            return await modern()
        except pytest.fail.Exception:
            return False

    await eventually(refused, "older versions are refused")
    parts = {"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

    async def rolled() -> bool:
        return moved(before, await generations(admin)) == parts

    await eventually(rolled, "and only who speaks TLS to others was rolled")
    await configure(admin, apiServer={"tlsSecurityProfile": {"type": "Old"}})

    async def old() -> bool:
        return (await caller.get(ca, name, most=ssl.TLSVersion.TLSv1_2))[0] in (401, 403)

    await eventually(old, "an API server starts with the ciphers of old clients too")


async def test_the_schedulers_profile_rolls_the_scheduler_and_is_what_it_reads(
    admin: Client, pods: HostedPods, tmp_path: Path, bin_dir: Path
) -> None:
    before = await generations(admin)
    await configure(admin, scheduler={"profile": "HighNodeUtilization"})

    async def rolled() -> bool:
        return moved(before, await generations(admin)) == {"kube-scheduler"}

    await eventually(rolled, "the scheduler alone")
    for profile, sign in (("HighNodeUtilization", "MostAllocated"), ("NoScoring", "default-scheduler")):
        await configure(admin, scheduler={"profile": profile})

        async def written(wanted: str = profile) -> bool:
            live = await admin.get(k.CONFIGMAPS, "kube-scheduler", NS)
            told = json.loads(live["data"]["config.yaml"])["profiles"][0]["plugins"]["score"]
            return bool((told["disabled"] == [{"name": "*"}]) == (wanted == "NoScoring"))

        await eventually(written, profile)
        live = await admin.get(k.CONFIGMAPS, "kube-scheduler", NS)
        config = json.loads(live["data"]["config.yaml"])
        (tmp_path / "kubeconfig").write_bytes(await kubeconfig(admin))
        config["clientConnection"] = {"kubeconfig": str(tmp_path / "kubeconfig")}
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        read = tmp_path / f"{profile}.yaml"
        words = [f"--config={tmp_path / 'config.yaml'}", f"--write-config-to={read}"]
        done = await asyncio.to_thread(_run, [str(bin_dir / "kube-scheduler"), *words])
        assert done.returncode == 0, done.stderr
        assert sign in read.read_text(), "kube-scheduler itself understands it"


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


async def test_names_of_the_owners_and_proxies_have_conditions_of_their_own(admin: Client, pods: HostedPods) -> None:
    before = await generations(admin)
    assert await s.condition(admin, NAME, "ExternalDNSReachable") == {}, "it has no such name"
    assert await s.condition(admin, NAME, "ValidProxyConfiguration") == {}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"kubeAPIServerDNSName": "nobody.invalid"}})
    missing = lambda: told(admin, NAME, "ExternalDNSReachable", "False", "nobody.invalid")  # noqa: E731
    await eventually(missing, "a record is missing")
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"kubeAPIServerDNSName": None}})

    async def silent() -> bool:
        return await s.condition(admin, NAME, "ExternalDNSReachable") == {}

    await eventually(silent, "without such a name there is nothing to tell")

    proxy = {"httpProxy": "http://proxy.example.test:3128", "trustedCA": {"name": "of-proxy"}}
    await configure(admin, proxy=proxy)
    wrong = lambda: told(admin, NAME, "ValidProxyConfiguration", "False", "clusters/of-proxy")  # noqa: E731
    assert (await eventually(wrong, "no authority"))["reason"] == "ProxyCABundleInvalid"
    await give(admin, "ConfigMap", "of-proxy", {"ca-bundle.crt": pki.new_ca("proxy").cert_pem})
    await eventually(lambda: says(admin, NAME, "ValidProxyConfiguration", "True"), "it is there")
    await configure(admin, proxy={**proxy, "httpProxy": "nowhere"})
    await eventually(lambda: mentions(admin, NAME, "ValidProxyConfiguration", "is not a proxy"), "that is none")
    await configure(admin, proxy=None)

    async def gone() -> bool:
        return await s.condition(admin, NAME, "ValidProxyConfiguration") == {}

    await eventually(gone, "without a proxy there is nothing to tell")
    assert moved(before, await generations(admin)) <= {"kube-apiserver"}, (
        "a proxy is for nodes; a name is in a certificate"
    )
