"""Node pools on a real API server: what is made, what replaces machines, and that nothing stays behind."""

from __future__ import annotations

import base64
import gzip
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.eventually import eventually
from tests.support.node_pools import (
    Object,
    clean,
    condition,
    deployment_of,
    hosted_cluster,
    node_pool,
    pool_rests,
    pool_with,
    prepare,
    quiet,
    running_operator,
)
from tests.support.passes import a_pass

from hcp.kube import Client
from hcp.kube import resources as r
from hcp.nodepool.template import machine_template, template_name
from hcp.pki import new_ca

_BASE64 = re.compile(r"base64,([A-Za-z0-9+/=]+)")


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A namespace with a hosted cluster whose control plane is up."""
    await prepare(client)
    await clean(client)
    await hosted_cluster(client, namespace, api_server)
    yield namespace
    await clean(client, namespace)


async def complete(client: Client, namespace: str) -> None:
    """Play Cluster API: all machines are new and available."""
    live = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{namespace}-demo")
    count = live["spec"]["replicas"]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), count)
    ready = {"type": "Ready", "status": "True", "reason": "Ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {**counts, "observedGeneration": live["metadata"]["generation"], "conditions": [ready]}
    await client.patch(r.MACHINEDEPLOYMENTS, "demo", f"{namespace}-demo", {"status": status}, subresource="status")


async def test_a_pool_becomes_machines_and_then_rests(client: Client, home: str, api_server: Path) -> None:
    hosted = f"{home}-demo"
    reads: list[tuple[str, str]] = []
    async with running_operator(api_server, reads) as writes:
        await client.create(node_pool(home))
        deployment = await deployment_of(client, home)
        machine = deployment["spec"]["template"]["spec"]
        assert deployment["spec"]["replicas"] == 2
        assert machine["clusterName"] == "demo-abcde"
        template = await client.get(r.KUBEVIRTMACHINETEMPLATES, machine["infrastructureRef"]["name"], hosted)
        vm = template["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]
        assert vm["dataVolumeTemplates"][0]["spec"]["source"]["registry"]["url"] == "docker://r.test/disk@sha256:3"
        user_data = await client.get(r.SECRETS, machine["bootstrap"]["dataSecretName"], hosted)
        pointer = json.loads(base64.b64decode(user_data["data"]["value"]))
        assert pointer["ignition"]["config"]["merge"][0]["source"] == "https://ignition.example.com/ignition"
        target = machine["bootstrap"]["dataSecretName"].removeprefix("user-data-demo-")
        assert await client.get(r.SECRETS, f"token-demo-{target}", hosted)
        assert await client.get(r.SECRETS, f"ignition-{hosted}.demo-{target}", "hypershift")
        policy = await eventually(lambda: client.get(r.NETWORKPOLICIES, "virt-launcher", hosted), "their isolation")
        assert policy["spec"]["policyTypes"] == ["Egress", "Ingress"]
        await pool_with(client, home, "UpdatingVersion", "True")
        await complete(client, home)
        pool = await pool_with(client, home, "UpdatingVersion", "False")
        assert pool["status"]["version"] == "1.36.3"
        assert condition(pool, "ReachedIgnitionEndpoint")["status"] == "False"

        def nudge(resource: r.Resource) -> Callable[[str], Awaitable[Any]]:
            return lambda word: client.patch(
                resource, "demo", home, {"metadata": {"annotations": {"example.com/x": word}}}
            )

        await pool_rests(writes, ["nodepool"], nudge(r.NODEPOOLS))

        async def asks_nothing() -> bool:
            """A change that means nothing asks for a pass; the pass asks the server for nothing."""
            reads.clear()
            async with a_pass("nodepool"):
                await nudge(r.NODEPOOLS)(uuid.uuid4().hex)
            # Kinds that are not installed are looked for again now and then, with or without a pass.
            return [read for read in reads if not read[1].endswith(".config.openshift.io")] == []

        await eventually(asks_nothing, "a pass that asks for nothing")
        await pool_rests(writes, ["nodepool", "vm-isolation"], nudge(r.HOSTEDCLUSTERS))


async def test_a_new_pull_secret_reaches_the_document(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server) as writes:
        await client.create(node_pool(home))
        machine = (await deployment_of(client, home))["spec"]["template"]["spec"]
        name = machine["bootstrap"]["dataSecretName"].removeprefix("user-data-demo-")
        await quiet(writes)

        async def document() -> Object:
            return await client.get(r.SECRETS, f"ignition-{home}-demo.demo-{name}", "hypershift")

        first = (await document())["data"]
        renewed = base64.b64encode(b'{"auths": {"r.test": {"auth": "bmV3Og=="}}}').decode()
        await client.patch(r.SECRETS, "demo-pull-secret", home, {"data": {".dockerconfigjson": renewed}})

        async def written() -> bool:
            return bool((await document())["data"] != first)

        assert await eventually(written)
        # Machines are not replaced for it: its name is what counts.
        assert (await deployment_of(client, home))["spec"]["template"]["spec"] == machine


async def test_what_replaces_machines_and_what_does_not(client: Client, home: str, api_server: Path) -> None:
    hosted = f"{home}-demo"

    async def refs() -> tuple[str, str, str]:
        spec = (await client.get(r.MACHINEDEPLOYMENTS, "demo", hosted))["spec"]["template"]["spec"]
        return spec["bootstrap"]["dataSecretName"], spec["infrastructureRef"]["name"], spec["version"]

    async with running_operator(api_server) as writes:
        await client.create(node_pool(home))
        await deployment_of(client, home)
        first = await refs()
        harmless: Object = {
            "nodeLabels": {"a": "b"},
            "taints": [{"key": "x", "effect": "NoSchedule"}],
            "replicas": 3,
            "nodeDrainTimeout": "7m",
            "management": {"autoRepair": True, "upgradeType": "Replace"},
        }
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": harmless})

        async def scaled() -> bool:
            found = await client.get(r.MACHINEDEPLOYMENTS, "demo", hosted)
            return bool(found["spec"]["replicas"] == 3)

        assert await eventually(scaled)
        await quiet(writes)
        assert await refs() == first
        content = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: k}\n"
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "mine", "namespace": home},
            "data": {"config": content + "spec: {kubeletConfig: {maxPods: 50}}"},
        }
        await client.create(config)
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"config": [{"name": "mine"}]}})

        async def reconfigured() -> bool:
            return (await refs())[0] != first[0]

        assert await eventually(reconfigured)
        assert (await refs())[1:] == first[1:]
        old = first[0].replace("user-data-", "token-")

        async def expiring() -> bool:
            secret = await client.get(r.SECRETS, old, hosted)
            return "hypershift.openshift.io/ignition-token-expiration-timestamp" in secret["metadata"]["annotations"]

        assert await eventually(expiring)
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"release": {"image": "r.test/release:1.36.4"}}})
        pool = await pool_with(client, home, "ValidReleaseImage", "True")
        assert pool["spec"]["release"]["image"].endswith("1.36.4") or pool


async def test_a_new_operator_keeps_the_machines_of_an_older_one(client: Client, home: str, api_server: Path) -> None:
    """Templates of operators before there was a default time to shut down have none; machines stay as they are."""
    hosted = f"{home}-demo"

    async def ref() -> str:
        spec = (await client.get(r.MACHINEDEPLOYMENTS, "demo", hosted))["spec"]["template"]["spec"]
        return str(spec["infrastructureRef"]["name"])

    async with running_operator(api_server):
        await client.create(node_pool(home))
        await deployment_of(client, home)
        template = await client.get(r.KUBEVIRTMACHINETEMPLATES, await ref(), hosted)
    machine = template["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]
    assert machine.pop("terminationGracePeriodSeconds") == 300
    older = template_name("demo", template["spec"])
    await client.create(machine_template(older, hosted, f"{home}/demo", template["spec"]))
    body = {"spec": {"template": {"spec": {"infrastructureRef": {"name": older}}}}}
    await client.patch(r.MACHINEDEPLOYMENTS, "demo", hosted, body)
    await client.delete(r.KUBEVIRTMACHINETEMPLATES, template["metadata"]["name"], hosted)
    async with running_operator(api_server) as writes:
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"replicas": 3}})

        async def scaled() -> bool:
            return bool((await client.get(r.MACHINEDEPLOYMENTS, "demo", hosted))["spec"]["replicas"] == 3)

        assert await eventually(scaled)
        await quiet(writes)
        assert await ref() == older
        note = "hypershift.openshift.io/kubevirt-termination-grace-period"
        await client.patch(r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {note: "soon"}}})
        await pool_with(client, home, "ValidMachineTemplate", "False", words="such as 10m")
        await client.patch(r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {note: "10m"}}})

        async def longer() -> bool:
            return await ref() != older

        assert await eventually(longer)
        template = await client.get(r.KUBEVIRTMACHINETEMPLATES, await ref(), hosted)
        vm = template["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]
        assert vm["terminationGracePeriodSeconds"] == 600


async def test_bad_input_is_a_condition_and_heals(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        await client.create(node_pool(home, release={"image": "r.test/release:1.37.0"}))
        await pool_with(client, home, "ValidReleaseImage", "False", words="newer")
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"release": {"image": "r.test/release:1.36.3"}}})
        await pool_with(client, home, "ValidReleaseImage", "True")
        patch = "hypershift.openshift.io/kubevirt-vm-jsonpatch"
        bad = {"metadata": {"annotations": {patch: '[{"op": "remove", "path": "/nope"}]'}}}
        await client.patch(r.NODEPOOLS, "demo", home, bad)
        pool = await pool_with(client, home, "ValidMachineTemplate", "False")
        assert condition(pool, "ValidMachineTemplate")["reason"] == "InvalidKubevirtMachineTemplate"
        await client.patch(r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {patch: None}}})
        await pool_with(client, home, "ValidMachineTemplate", "True")
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"config": [{"name": "absent"}]}})
        await pool_with(client, home, "ValidMachineConfig", "False", words="absent")
        config = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "absent", "namespace": home}}
        text = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: m}\n"
        await client.create({**config, "data": {"config": text}})
        await pool_with(client, home, "ValidMachineConfig", "True")
        body = {"spec": {"platform": {"kubevirt": {"rootVolume": {"persistent": {"storageClass": "nope"}}}}}}
        await client.patch(r.NODEPOOLS, "demo", home, body)
        await pool_with(client, home, "ValidPlatformConfig", "False", words="nope")


async def test_fields_without_effect_are_named_and_hinder_nothing(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        made = node_pool(home, autoScaling={"min": 1, "max": 3})
        del made["spec"]["replicas"]
        await client.create(made)
        assert (await deployment_of(client, home))["spec"]["replicas"] == 1
        pool = await pool_with(client, home, "AllFieldsHonoured", "False")
        assert condition(pool, "AutoscalingEnabled")["status"] == "False"
        for kind in ("AutoscalingEnabled", "AllFieldsHonoured"):
            assert condition(pool, kind)["reason"] == "FieldsNotHonoured"
        assert "has no cluster-autoscaler" in condition(pool, "AllFieldsHonoured")["message"]


async def test_tuning_becomes_part_of_the_nodes_document(client: Client, home: str, api_server: Path) -> None:
    profile = "[main]\ninclude=openshift-node\n[sysctl]\nvm.swappiness=7\n[bootloader]\ncmdline=hugepages=2\n"
    spec = {"profile": [{"name": "own", "data": profile}], "recommend": [{"priority": 20, "profile": "own"}]}
    config = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "quiet", "namespace": home}}
    async with running_operator(api_server):
        await client.create(node_pool(home))
        plain = (await deployment_of(client, home))["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"]
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"tuningConfig": [{"name": "quiet"}]}})
        await pool_with(client, home, "ValidTuningConfig", "False", words="'quiet'")
        await client.create({**config, "data": {"tuning": json.dumps({"kind": "Tuned", "spec": spec})}})
        pool = await pool_with(client, home, "ValidTuningConfig", "True", words="openshift-node")
        assert condition(pool, "ValidTuningConfig")["reason"] == "FieldsNotHonoured"

        async def rolled() -> str | None:
            found = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            name = str(found["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"])
            return name if name != plain else None

        name = await eventually(rolled, "machines with the tuning replace those without")
        target = name.rpartition("-")[2]
        stored = await client.get(r.SECRETS, f"ignition-{home}-demo.demo-{target}", "hypershift")
        document = json.loads(gzip.decompress(base64.b64decode(stored["data"]["payload"])))
        files = {f["path"]: f["contents"]["source"] for f in document["storage"]["files"]}
        assert "swappiness" in files["/etc/sysctl.d/95-tuning.conf"] and "/etc/hcp/kernel-arguments" in files
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"tuningConfig": None}})

        async def back() -> bool:
            found = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            return bool(found["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"] == plain)

        assert await eventually(back), "without tuning the configuration is what it was"


async def test_pause_holds_machines_still(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        await client.create(node_pool(home))
        await deployment_of(client, home)
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"pausedUntil": "true", "replicas": 5}})
        await pool_with(client, home, "ReconciliationActive", "False")

        async def paused() -> bool:
            found = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            return "cluster.x-k8s.io/paused" in found["metadata"]["annotations"] and found["spec"]["replicas"] == 2

        assert await eventually(paused)
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"pausedUntil": None}})

        async def resumed() -> bool:
            found = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            active = "cluster.x-k8s.io/paused" not in found["metadata"]["annotations"]
            return active and bool(found["spec"]["replicas"] == 5)

        assert await eventually(resumed)


async def leftovers(client: Client, namespace: str) -> list[str]:
    hosted = f"{namespace}-demo"
    found: list[str] = []
    for resource in (
        r.MACHINEDEPLOYMENTS,
        r.MACHINES,
        r.KUBEVIRTMACHINETEMPLATES,
        r.MACHINEHEALTHCHECKS,
        r.DATAVOLUMES,
    ):
        found += [item["metadata"]["name"] for item in await client.list(resource, hosted)]
    for item in await client.list(r.SECRETS, hosted):
        name = item["metadata"]["name"]
        found += [name] if name.startswith(("token-", "user-data-")) else []
    for item in await client.list(r.SECRETS, "hypershift"):
        found += [item["metadata"]["name"]] if hosted in item["metadata"]["name"] else []
    return found


async def gone(client: Client, namespace: str) -> bool:
    return await client.get_or_none(r.NODEPOOLS, "demo", namespace) is None


@pytest.mark.parametrize("cluster_first", [False, True])
async def test_deleting_leaves_nothing(client: Client, home: str, api_server: Path, cluster_first: bool) -> None:
    cache = {"rootVolume": {"persistent": {"size": "8Gi"}, "type": "Persistent", "cacheStrategy": {"type": "PVC"}}}
    pool = node_pool(home)
    pool["spec"]["platform"]["kubevirt"].update(cache)
    async with running_operator(api_server):
        await client.create(pool)
        await deployment_of(client, home)
        await eventually(lambda: client.list(r.DATAVOLUMES, f"{home}-demo"), "its cache")
        machine = {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "name": "demo-x",
                "namespace": f"{home}-demo",
                "finalizers": ["machine.cluster.x-k8s.io"],
                "annotations": {"hypershift.openshift.io/nodePool": f"{home}/demo"},
            },
            "spec": {
                "clusterName": "demo",
                "bootstrap": {"dataSecretName": "user-data"},
                "infrastructureRef": {"kind": "KubevirtMachine", "name": "demo-x"},
            },
        }
        await client.create(machine)
        if cluster_first:
            # Somebody took the hosted cluster away by force; Cluster API's own object went with it.
            await client.delete(r.HOSTEDCLUSTERS, "demo", home)
        await client.delete(r.NODEPOOLS, "demo", home)
        assert await eventually(lambda: gone(client, home))
    assert await leftovers(client, home) == []


async def test_a_deleted_cache_comes_back_without_replacing_machines(
    client: Client, home: str, api_server: Path
) -> None:
    hosted = f"{home}-demo"
    pool = node_pool(home)
    pool["spec"]["platform"]["kubevirt"]["rootVolume"]["cacheStrategy"] = {"type": "PVC"}
    async with running_operator(api_server):
        await client.create(pool)
        before = (await deployment_of(client, home))["spec"]["template"]["spec"]["infrastructureRef"]["name"]
        [cache] = await eventually(lambda: client.list(r.DATAVOLUMES, hosted), "its cache")
        await client.delete(r.DATAVOLUMES, cache["metadata"]["name"], hosted)
        await client.patch(r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {"example.com/x": "y"}}})

        async def back() -> bool:
            return [item["metadata"]["name"] for item in await client.list(r.DATAVOLUMES, hosted)] == [
                cache["metadata"]["name"]
            ]

        assert await eventually(back)
        after = (await deployment_of(client, home))["spec"]["template"]["spec"]["infrastructureRef"]["name"]
        assert after == before


async def test_authorities_of_a_proxy_and_of_registries_reach_machines_and_new_ones_replace_none(
    client: Client, home: str, api_server: Path
) -> None:
    proxy, registry, other = (new_ca(name).cert_pem.decode() for name in ("proxy", "registry", "other"))

    async def give(name: str, data: dict[str, str]) -> None:
        await client.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": home}, "data": data}
        )

    async def document() -> str:
        pool = (await deployment_of(client, home))["spec"]["template"]["spec"]
        target = pool["bootstrap"]["dataSecretName"].removeprefix("user-data-demo-")
        secret = await client.get(r.SECRETS, f"ignition-{home}-demo.demo-{target}", "hypershift")
        return gzip.decompress(base64.b64decode(secret["data"]["payload"])).decode()

    async def has(*certificates: str) -> bool:
        found = unquote(await document())
        parts = [part.encode() for part in certificates]
        plain = found.encode() + b"".join(base64.b64decode(one) for one in _BASE64.findall(found))
        return all(part in plain for part in parts)

    await give("of-proxy", {"ca-bundle.crt": proxy})
    await give("of-registries", {"registry.test..5000": registry, "broken.test": "no certificate"})
    configuration = {
        "proxy": {"httpProxy": "http://proxy.test:3128", "trustedCA": {"name": "of-proxy"}},
        "image": {"additionalTrustedCA": {"name": "of-registries"}},
    }
    await client.patch(r.HOSTEDCLUSTERS, "demo", home, {"spec": {"configuration": configuration}})
    async with running_operator(api_server, []):
        await client.create(node_pool(home))
        await eventually(lambda: has(proxy, registry), "machines get both")
        assert "broken.test" not in await document(), "what containerd could not read never gets there"
        before = (await deployment_of(client, home))["spec"]["template"]
        await give("of-proxy", {"ca-bundle.crt": proxy + other})
        await eventually(lambda: has(proxy, registry, other), "new machines get the new one too")
        assert (await deployment_of(client, home))["spec"]["template"] == before, "those that run stay"
