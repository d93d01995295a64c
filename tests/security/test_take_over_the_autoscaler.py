"""Whoever takes over the autoscaler has its token: sizes of the pools of one cluster, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from tests.support.api_server import account_token
from tests.support.unit.controlplane import params

from hcp.controlplane import autoscaler
from hcp.install import autoscaling
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.config import UserAuth

MINE, OTHER = "clusters-mine", "clusters-other"


async def test_its_account_ends_at_its_namespace_and_makes_reads_and_deletes_nothing_of_value(admin: Client) -> None:
    for name in (MINE, OTHER):
        await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for one in (*autoscaling.objects(), *autoscaler.account(replace(params(), namespace=MINE, owner=None))):
        await admin.apply(one)
    config = replace(admin.config, auth=UserAuth(token=await account_token(admin, autoscaler.ACCOUNT, MINE)))
    async with Client(config) as taken:
        for rule in autoscaling.hosted_rules():
            for name in rule["resources"]:
                plural, _, sub = name.partition("/")
                resource = k.Resource(rule["apiGroups"][0], "v1beta1", plural, "")
                for verb in rule["verbs"]:
                    assert await taken.allowed(verb, resource, MINE, sub), (verb, name)
                    assert not await taken.allowed(verb, resource, OTHER, sub), (verb, name)
        for verb, resource in (
            ("get", k.SECRETS),
            ("list", k.SECRETS),
            ("get", k.CONFIGMAPS),
            ("create", k.PODS),
            ("create", k.MACHINES),
            ("delete", k.MACHINES),
            ("create", k.MACHINEDEPLOYMENTS),
            ("patch", k.MACHINEDEPLOYMENTS),
            ("delete", k.MACHINEDEPLOYMENTS),
            ("create", k.KUBEVIRTMACHINETEMPLATES),
            ("get", k.VIRTUALMACHINES),
            ("patch", k.NODEPOOLS),
        ):
            assert not await taken.allowed(verb, resource, MINE), (verb, resource)
