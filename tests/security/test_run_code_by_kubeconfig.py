"""A kubeconfig in a Secret that would run a program in the operator, or send the operator's token somewhere else."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.cli_runner import Runner
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker
from tests.support.security.listener import Listener, listening

from hcp.api import names
from hcp.errors import HcpError
from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k

Object = dict[str, Any]
STOLEN = "token-of-the-operator"


@dataclass(frozen=True)
class Trap:
    """Where a successful attack leaves traces."""

    folder: Path
    https: Listener
    http: Listener

    @property
    def marker(self) -> Path:
        return self.folder / "code-ran-here"

    @property
    def sprung(self) -> bool:
        return self.marker.exists() or bool(self.https.calls) or bool(self.http.calls)

    def reset(self) -> None:
        self.marker.unlink(missing_ok=True)
        self.https.calls.clear()
        self.http.calls.clear()


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    (tmp_path / "token").write_text(STOLEN)
    with listening(tmp_path) as https, listening(tmp_path, tls=False) as http:
        (tmp_path / "ca.crt").write_bytes(https.ca_pem)
        yield Trap(tmp_path, https, http)


def kubeconfig(trap: Trap, *, cluster: Object | None = None, user: Object | None = None) -> Object:
    """What is allowed, with changes; a value of None takes a field away."""
    inside = {
        "server": trap.https.url,
        "certificate-authority-data": base64.b64encode(trap.https.ca_pem).decode(),
        **(cluster or {}),
    }
    who = {"token": "of-the-attacker", **(user or {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {x: y for x, y in inside.items() if y is not None}}],
        "users": [{"name": "u", "user": {x: y for x, y in who.items() if y is not None}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def run_code(trap: Trap) -> Object:
    """Gives a token too, as a plugin does: the request after it is made."""
    status = json.dumps({"kind": "ExecCredential", "status": {"token": "x"}})
    script = f"touch {trap.marker}; echo '{status}'"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script]}
    return kubeconfig(trap, user={"token": None, "exec": {**plugin, "interactiveMode": "Never"}})


# What is tried, and the field that must be named.
ATTACKS: dict[str, tuple[Callable[[Trap], Object], str]] = {
    "exec": (run_code, "users[].user.exec"),
    "token-file": (
        lambda t: kubeconfig(t, user={"token": None, "tokenFile": str(t.folder / "token")}),
        "users[].user.tokenFile",
    ),
    "ca-file": (
        lambda t: kubeconfig(
            t, cluster={"certificate-authority-data": None, "certificate-authority": str(t.folder / "ca.crt")}
        ),
        "clusters[].cluster.certificate-authority",
    ),
    "insecure": (
        lambda t: kubeconfig(t, cluster={"certificate-authority-data": None, "insecure-skip-tls-verify": True}),
        "clusters[].cluster.insecure-skip-tls-verify",
    ),
    "http": (
        lambda t: kubeconfig(t, cluster={"certificate-authority-data": None, "server": t.http.url}),
        "clusters[].cluster.server",
    ),
    "proxy": (lambda t: kubeconfig(t, cluster={"proxy-url": t.http.url}), "clusters[].cluster.proxy-url"),
    "auth-provider": (
        lambda t: kubeconfig(
            t, user={"token": None, "auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}
        ),
        "users[].user.auth-provider",
    ),
    "key-file": (
        lambda t: kubeconfig(
            t, user={"token": None, "client-certificate": "/etc/passwd", "client-key": str(t.folder / "token")}
        ),
        "users[].user.client-certificate",
    ),
    "impersonation": (lambda t: kubeconfig(t, user={"as": "system:admin"}), "users[].user.as"),
}
# Those that the ordinary reader of kubeconfigs carries out.
WORKS_UNCHECKED = ("exec", "token-file", "ca-file", "insecure", "http")


async def ask(config: Object) -> None:
    async with Client(ClusterConfig.from_kubeconfig_dict(config)) as client:
        with pytest.raises(HcpError):
            await client.list(k.NAMESPACES)


async def external(attacker: Attacker, name: str, config: Object | str) -> None:
    """A hosted cluster whose machines are to run elsewhere."""
    await attacker.secret(f"{name}-infra", kubeconfig=config if isinstance(config, str) else yaml.safe_dump(config))
    credentials = {"infraNamespace": "vms", "infraKubeConfigSecret": {"name": f"{name}-infra", "key": "kubeconfig"}}
    await attacker.cluster(name, platform={"type": "KubeVirt", "kubevirt": {"credentials": credentials}})


async def told(attacker: Attacker, name: str, status: str) -> Object:
    found: Object = {}

    async def says() -> bool:
        nonlocal found
        found = await attacker.condition(name, "PlatformCredentialsFound")
        return found.get("status") == status

    await eventually(says, f"{name}: PlatformCredentialsFound {status}")
    return found


@pytest.mark.parametrize("attack", WORKS_UNCHECKED)
async def test_the_trap_works(trap: Trap, attack: str) -> None:
    """Without the strict reader each of these is carried out: what follows proves something."""
    await ask(ATTACKS[attack][0](trap))
    assert trap.sprung
    if attack == "exec":
        assert trap.marker.exists()
    if attack == "token-file":
        assert trap.https.calls == [f"Bearer {STOLEN}"]


async def test_what_reaches_beyond_the_secret_is_refused_by_name(
    admin: Client, attacker: Attacker, trap: Trap, operator: s.OperatorProcess
) -> None:
    for attack, (made, _field) in ATTACKS.items():
        await external(attacker, attack, made(trap))
    for attack, (_made, field) in ATTACKS.items():
        verdict = await told(attacker, attack, "False")
        assert verdict["reason"] == "InvalidPlatformCredentials"
        assert f"{field} " in verdict["message"], verdict
        # Cluster API's provider, which is less careful, is given nothing.
        assert await admin.get_or_none(k.SECRETS, names.INFRA_CREDENTIALS, attacker.hosted(attack)) is None
    assert not trap.sprung
    assert not operator.ended


async def test_other_readers_get_a_copy_of_what_was_understood(
    admin: Client, attacker: Attacker, trap: Trap, operator: s.OperatorProcess
) -> None:
    config = kubeconfig(trap)
    # A second user with a program, which no context uses now; a copy of the text would carry it along.
    config["users"].append({"name": "later", "user": run_code(trap)["users"][0]["user"]})
    await external(attacker, "plain", config)
    await attacker.secret("plain-infra", kubeconfig=yaml.safe_dump(config), namespace="kube-system")
    await told(attacker, "plain", "True")
    hosted = attacker.hosted("plain")

    async def copied() -> bool:
        return await admin.get_or_none(k.SECRETS, names.INFRA_CREDENTIALS, hosted) is not None

    await eventually(copied, "the copy is there")
    live = await admin.get(k.SECRETS, names.INFRA_CREDENTIALS, hosted)
    data = {key: base64.b64decode(value).decode() for key, value in live["data"].items()}
    assert data.keys() == {"kubeconfig", "namespace"}
    assert data["namespace"] == "vms"
    assert "exec" not in data["kubeconfig"]
    assert yaml.safe_load(data["kubeconfig"])["users"] == [{"name": "u", "user": {"token": "of-the-attacker"}}]

    async def handed_over() -> bool:
        return bool(await admin.list(k.KUBEVIRTCLUSTERS, hosted))

    await eventually(handed_over, "Cluster API has its objects")
    reference = (await admin.list(k.KUBEVIRTCLUSTERS, hosted))[0]["spec"]["infraClusterSecretRef"]
    assert (reference["name"], reference["namespace"]) == (names.INFRA_CREDENTIALS, hosted)

    # A good kubeconfig that turns bad: the good copy stays and keeps the machines alive.
    turned = copy.deepcopy(config)
    turned["current-context"] = "y"
    turned["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "later"}})
    await attacker.secret("plain-infra", kubeconfig=yaml.safe_dump(turned))
    assert "users[].user.exec" in (await told(attacker, "plain", "False"))["message"]
    after = await admin.get(k.SECRETS, names.INFRA_CREDENTIALS, hosted)
    assert after["data"] == live["data"]

    # A bad copy, as an earlier version made them, does not stay.
    bad = base64.b64encode(yaml.safe_dump(run_code(trap)).encode()).decode()
    await admin.patch(k.SECRETS, names.INFRA_CREDENTIALS, hosted, {"data": {"kubeconfig": bad}})

    async def gone() -> bool:
        return await admin.get_or_none(k.SECRETS, names.INFRA_CREDENTIALS, hosted) is None

    await eventually(gone, "the bad copy is gone")
    assert not trap.marker.exists()


async def test_a_kubeconfig_cannot_bring_the_operator_down(
    attacker: Attacker, operator: s.OperatorProcess, management: ApiServer
) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    texts = {
        "deep": "[" * 200_000,
        "grows": "\n".join([*lines, "current-context: *a11"]),
        "large": json.dumps({"clusters": ["x" * 400_000]}),
        "binary": "\x00\x01\x02",
        "list": "- 1",
        "numbers": json.dumps({"clusters": 1, "users": [2], "contexts": {"x": 3}, "current-context": 4}),
    }
    for name, text in texts.items():
        await external(attacker, name, text)
    for name in texts:
        assert (await told(attacker, name, "False"))["reason"] == "InvalidPlatformCredentials"
    assert not operator.ended
    assert "Traceback" not in management.log("operator")


async def test_commands_of_an_administrator_do_not_carry_it_out(
    admin: Client, attacker: Attacker, trap: Trap, management: ApiServer, tmp_path: Path
) -> None:
    """The attacker owns the namespace in which the kubeconfigs lie that `hcp dump` and `hcp create kubeconfig` find."""
    bad = yaml.safe_dump(run_code(trap))
    await external(attacker, "demo", bad)
    await attacker.secret("demo-admin-kubeconfig", kubeconfig=bad)
    status = {"status": {"kubeconfig": {"name": "demo-admin-kubeconfig"}}}
    await admin.patch(k.HOSTEDCLUSTERS, "demo", attacker.namespace, status, subresource="status")
    cluster = await admin.get(k.HOSTEDCLUSTERS, "demo", attacker.namespace)
    from tests.support.crds import rendered_pool

    await attacker.client.create(rendered_pool(attacker.namespace))
    credentials = cluster["spec"]["platform"]["kubevirt"]["credentials"]
    seen = {"status": {"platform": {"kubeVirt": {"credentials": credentials}}}}
    await admin.patch(k.NODEPOOLS, "demo", attacker.namespace, seen, subresource="status")

    runner = Runner(management.kubeconfig, tmp_path)
    where = ("--name", "demo", "--namespace", attacker.namespace)
    done = runner.ok("dump", "cluster", *where, "--artifact-dir", str(tmp_path / "dump"), "--dump-guest-cluster")
    assert done.err.count("users[].user.exec") == 2, done.err
    assert "users[].user.exec" in runner.fails("create", "kubeconfig", *where)
    merged = runner.ok("create", "kubeconfig", "--namespace", attacker.namespace)
    assert "left out" in merged.err and "exec" not in merged.out
    assert not trap.sprung


def test_the_command_line_says_so_before_anything_is_made(trap: Trap, management: ApiServer, tmp_path: Path) -> None:
    runner = Runner(management.kubeconfig, tmp_path)
    file = tmp_path / "infra.yaml"
    file.write_text(yaml.safe_dump(run_code(trap)))
    words = (*runner.create_words("early", "clusters"), "--infra-namespace=vms", f"--infra-kubeconfig-file={file}")
    text = runner.fails(*words)
    assert "users[].user.exec" in text and "--infra-kubeconfig-file" in text
    assert not trap.marker.exists()
