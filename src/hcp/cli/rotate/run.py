"""`rotate cluster` and `rotate kubeconfig`: ask by annotation, then follow the condition."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api import conditions, names
from hcp.cli.engine import grammar
from hcp.cli.engine.command import Call
from hcp.cli.shared import health
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster
from hcp.cli.shared.progress import wait_until
from hcp.cli.shared.watched import Watched
from hcp.controlplane.certs import AUTHORITIES
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS

Object = dict[str, Any]
SHORT = {
    "root": "root-ca",
    "etcd": "etcd-signer",
    "admin": "system-admin-signer",
    "kubelets": "cluster-signer-ca",
    "konnectivity": "konnectivity-signer",
}
NEVER = "every certificate is the one made with the cluster; nothing was ever asked to change"


async def cluster(call: Call) -> int:
    namespace, name = call.text("namespace"), call.arg("NAME")
    async with connect(call) as client:
        found = await find_cluster(client, call.prog, namespace, name)
        if call.switch("status"):
            print(_said(found)[1])
            return 0
        mark = _mark()
        wanted = {
            names.ANNOTATION_ROTATE: f"{','.join(_chosen(call.items('ca')))}@{mark}",
            names.ANNOTATION_ROTATION_OVERLAP: call.duration("overlap"),
        }
        lives = {
            "validity": names.ANNOTATION_CERTIFICATE_VALIDITY,
            "authority-validity": names.ANNOTATION_AUTHORITY_VALIDITY,
        }
        for flag, annotation in lives.items():
            if call.changed(flag):
                if call.seconds(flag) < 86400:
                    raise grammar.refuse(flag, call.duration(flag), "certificates live a day at least", "24h or longer")
                wanted[annotation] = call.duration(flag)
        _free(found, call.prog)
        await _annotate(client, namespace, name, wanted)
        print(f"HostedCluster {name}: rotation {mark} is asked for", flush=True)
        if call.switch("wait"):
            await _wait(client, call, mark)
    return 0


async def kubeconfig(call: Call) -> int:
    namespace, name = call.text("namespace"), call.arg("NAME")
    async with connect(call) as client:
        await find_cluster(client, call.prog, namespace, name)
        mark = _mark()
        await _annotate(client, namespace, name, {names.ANNOTATION_REVOKE_ADMIN: mark})
        print(f"HostedCluster {name}: its administrator's kubeconfig is revoked ({mark})", flush=True)
        if not call.switch("no-wait"):
            await _wait(client, call, mark)
            print(
                f"The old one is refused; {call.prog} create kubeconfig --name {name} -n {namespace} gives the new one"
            )
    return 0


def _chosen(items: list[str]) -> list[str]:
    found = [SHORT.get(item, item) for item in items]
    unknown = [item for item in found if item not in AUTHORITIES and item != "all"]
    if unknown or not found:
        allowed = ", ".join(("all", *SHORT, *(one for one in AUTHORITIES if one not in SHORT.values())))
        raise grammar.refuse("ca", ",".join(items), "there is no such authority", allowed)
    return found


def _mark() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _annotate(client: Client, namespace: str, name: str, values: dict[str, str]) -> None:
    body = {"metadata": {"annotations": values}}
    await client.patch(HOSTEDCLUSTERS, name, namespace, body, manager=names.CLI_FIELD_MANAGER)


def _said(found: Object | None) -> tuple[bool, str]:
    condition = health.condition(found or {}, conditions.CERTIFICATES_UP_TO_DATE)
    if condition is None:
        return True, NEVER
    return condition.get("status") == "True", str(condition.get("message"))


def _free(found: Object, prog: str) -> None:
    """One change at a time: the next one would have to wait for this one anyway."""
    done, text = _said(found)
    if not done:
        name = found["metadata"]["name"]
        raise HcpError(
            f"the certificates of hosted cluster {name} are being changed already",
            cause=text,
            hint=f"{prog} rotate cluster {name} -n {found['metadata']['namespace']} --status tells how far it is",
        )


async def _wait(client: Client, call: Call, mark: str) -> None:
    namespace, name = call.text("namespace"), call.arg("NAME")
    watched = Watched(HOSTEDCLUSTERS, namespace, name)

    def judge() -> tuple[bool, str]:
        if watched.one() is None:
            raise HcpError(f"hosted cluster {namespace}/{name} is gone")
        done, text = _said(watched.one())
        return done and mark in text, text

    again = f"{call.prog} rotate cluster {name} -n {namespace} --status tells how far it is"
    await wait_until(
        client,
        [watched],
        judge,
        late=f"the certificates of hosted cluster {namespace}/{name} are not all new",
        seconds=call.seconds("timeout"),
        hint=again,
        again=again,
    )
