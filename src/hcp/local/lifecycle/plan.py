"""Deciding what `up` shall bring up: a new cluster, the remembered one, or the remembered one with more in it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hcp.errors import HcpError
from hcp.local.network.addresses import IPV4, IPV6, MAX_CLUSTERS
from hcp.local.network.ports import free_ports
from hcp.local.state import spec as specs
from hcp.local.state.layout import NUMBERS_LOCK, Layout, layouts, state_root
from hcp.local.state.locks import exclusive
from hcp.local.state.parts import minors
from hcp.local.state.spec import DEFAULT_KUBERNETES, DEFAULT_PROFILE, PROFILES, Spec


def plan(
    layout: Layout,
    profile: str | None,
    family: str | None = None,
    extras: Iterable[str] = (),
    kubernetes: str | None = None,
) -> Spec:
    """The cluster as it shall be, without `extras`. A new one is written down at once, so its number stays its own."""
    found = specs.load(layout)
    if found is not None:
        _same_family(found, family)
        _same_kubernetes(found, kubernetes)
        return _wanted(found, profile)
    wanted = profile or DEFAULT_PROFILE
    name = layout.root.name
    minor = _known(kubernetes or DEFAULT_KUBERNETES)
    check_family(Spec(name, wanted, ip_family=family or IPV4).with_extras(extras))
    if wanted == "api":
        layout.make()
        api, etcd, peer = free_ports(3)
        spec = Spec(name, wanted, None, api, etcd, peer, kubernetes=minor)
        specs.save(layout, spec)
        return spec
    need_root(wanted)
    with exclusive(state_root() / NUMBERS_LOCK):
        spec = Spec(name, wanted, _free_number(), ip_family=family or IPV4, kubernetes=minor)
        layout.make()
        specs.save(layout, spec)
    return spec


def _wanted(found: Spec, profile: str | None) -> Spec:
    if found.has_node:
        need_root(found.profile)
    if profile is None or profile == found.profile:
        return found
    if "api" in (profile, found.profile):
        raise HcpError(
            f"The name '{found.name}' is taken by a cluster of profile {found.profile}, which cannot become {profile}",
            hint=f"Use another --name, or remove it: hcp local down --name {found.name} --purge",
        )
    if PROFILES.index(profile) < PROFILES.index(found.profile):
        raise HcpError(
            f"Cluster '{found.name}' has profile {found.profile}, and KubeVirt is not removed from a cluster in use",
            hint=f"Leave --profile out, use another --name, or start anew after: hcp local down --name {found.name} "
            "--purge",
        )
    return found.with_profile(profile)


def _same_family(found: Spec, family: str | None) -> None:
    """Pods, Services and certificates have addresses of a family; none of them can be given another one."""
    if family is not None and family != found.ip_family:
        raise HcpError(
            f"Cluster '{found.name}' was made with --ip-family {found.ip_family}, which cannot become {family}",
            hint=f"Leave --ip-family out, use another --name, or start anew after: hcp local down --name {found.name} "
            "--purge",
        )


def _same_kubernetes(found: Spec, kubernetes: str | None) -> None:
    """A cluster that is there moves by a command of its own, part by part."""
    if kubernetes is not None and kubernetes != found.kubernetes:
        raise HcpError(
            f"Cluster '{found.name}' is at Kubernetes {found.kubernetes}",
            hint=f"hcp local upgrade --kubernetes {kubernetes} --name {found.name}",
        )


def _known(minor: str) -> str:
    known = minors()
    if minor not in known:
        raise HcpError(f"There is no Kubernetes {minor} to be had", hint=f"There are: {', '.join(known)}.", exit_code=2)
    return minor


def check_family(spec: Spec) -> None:
    """Refuses what cannot be had with the family, before anything is written."""
    if spec.ip_family == IPV4:
        return
    if not spec.has_node:
        raise HcpError("--ip-family is for clusters with a node", hint="Use --profile cluster or kubevirt.")
    if spec.ip_family == IPV6 and spec.profile == "kubevirt":
        raise HcpError(
            "Virtual machines need IPv4: on the network of pods KubeVirt tells them no IPv6 address",
            hint="Use --ip-family dual, or --profile cluster, which runs control planes.",
        )
    if spec.has_metallb:
        raise HcpError(
            f"--with metallb is for clusters of --ip-family {IPV4}",
            hint="Leave it out: the cluster gives load balancers addresses of both families by itself.",
        )


def need_root(profile: str) -> None:
    if os.geteuid() != 0:
        raise HcpError(
            f"Profile {profile} needs root: it makes network namespaces, mounts and cgroups",
            hint="Run it with sudo, or use --profile api, which needs no rights.",
        )


def _free_number() -> int:
    """The lowest number that no cluster here has and whose addresses nobody on this machine uses."""
    from hcp.local.host.checks import range_owner

    taken = {spec.number for layout in layouts() if (spec := _quiet_load(layout)) is not None}
    blockers = []
    for number in range(MAX_CLUSTERS):
        if number in taken:
            continue
        owner = range_owner(number)
        if owner is None:
            return number
        blockers.append(f"10.88.{number}.0/24 by {owner}")
    cause = "; ".join(blockers[:3]) or f"{MAX_CLUSTERS} clusters exist"
    raise HcpError(
        "No address range is free for another cluster",
        cause=cause,
        hint="hcp local list shows the clusters; hcp local down --name NAME --purge frees a range.",
    )


def _quiet_load(layout: Layout) -> Spec | None:
    try:
        return specs.load(layout)
    except HcpError:
        return None
