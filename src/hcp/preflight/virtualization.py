"""KubeVirt, CDI and the nodes that can run virtual machines. The same for management and external infra clusters."""

from __future__ import annotations

from typing import Any

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import ApiError, Forbidden, NotFound
from hcp.preflight import versions
from hcp.preflight.result import Finding, fail, ok, unknown, warn

KVM = "devices.kubevirt.io/kvm"


async def kubernetes(client: Client) -> Finding:
    version = str((await client.raw("GET", "/version")).get("gitVersion", ""))
    if not versions.at_least(version, versions.KUBERNETES):
        return fail(
            "Kubernetes",
            f"version {version} is too old",
            f"hosted clusters need Kubernetes {versions.shown(versions.KUBERNETES)} or newer",
        )
    return ok("Kubernetes", f"version {version}")


async def kubevirt_version(client: Client) -> str:
    """The version the KubeVirt API reports; empty when there is none."""
    try:
        group = await client.raw("GET", "/apis/subresources.kubevirt.io")
        preferred = group["preferredVersion"]["groupVersion"]
        return str((await client.raw("GET", f"/apis/{preferred}/version")).get("gitVersion", ""))
    except (ApiError, KeyError, TypeError):
        return ""


def _phase(objects: list[dict[str, Any]]) -> str:
    return str(next((at(one, "status.phase") for one in objects), "") or "")


async def kubevirt(client: Client) -> Finding:
    check = "KubeVirt"
    if not await client.has(r.VIRTUALMACHINES):
        return fail(check, "not installed", "install KubeVirt (OpenShift Virtualization), or use hcp local up")
    version = await kubevirt_version(client)
    if version and not versions.at_least(version, versions.KUBEVIRT):
        wanted = versions.shown(versions.KUBEVIRT)
        return fail(check, f"version {version} is too old", f"upgrade KubeVirt to {wanted} or newer")
    try:
        phase = _phase(await client.list(r.KUBEVIRTS))
    except (Forbidden, NotFound):
        phase = ""
    if phase and phase != "Deployed":
        return warn(check, f"is {phase}, not Deployed", "wait, or look at kubectl get kubevirt -A -o yaml")
    return ok(check, f"version {version}" if version else "its API is served")


async def cdi(client: Client) -> Finding:
    check = "CDI"
    if not await client.has(r.DATAVOLUMES):
        return fail(check, "not installed", "install the Containerized Data Importer: root disks are DataVolumes")
    try:
        phase = _phase(await client.list(r.CDIS))
    except (Forbidden, NotFound):
        phase = ""
    if phase and phase != "Deployed":
        return warn(check, f"is {phase}, not Deployed", "wait, or look at kubectl get cdi -o yaml")
    return ok(check, "its API is served")


async def acceleration(client: Client) -> Finding:
    """Whether a node offers KVM, or KubeVirt was told to do without."""
    check = "Hardware virtualization"
    try:
        nodes = await client.list(r.NODES)
    except Forbidden as error:
        return unknown(check, "not allowed to look at nodes", error.hint or "")
    able = [one["metadata"]["name"] for one in nodes if str((at(one, "status.allocatable") or {}).get(KVM, "0")) != "0"]
    if able:
        return ok(check, f"KVM on {len(able)} of {len(nodes)} nodes")
    try:
        configured = await client.list(r.KUBEVIRTS)
    except (Forbidden, NotFound):
        configured = []
    for one in configured:
        developer = at(one, "spec.configuration.developerConfiguration") or {}
        if developer.get("useEmulation"):
            return warn(
                check, "virtual machines are emulated in software", "fine for trying out, slow for anything else"
            )
    return warn(
        check, "no node offers KVM", "virtual machines need nodes with hardware virtualization, or useEmulation: true"
    )
