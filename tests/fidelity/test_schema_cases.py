"""HyperShift's own schema test cases against our definitions on a real API server.

The wording of refusals is ours; whether something is refused has to be the same.
"""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as support
from tests.support import upstream

from hcp.api import generate
from hcp.api.schema import without_rules
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kube.errors import Invalid

# What we take and upstream refuses: our autoscaler is told what a machine would be (docs/fidelity.md).
TAKEN = {"when autoScaling min=0 on KubeVirt platform it should fail"}
KINDS = {"HostedCluster": r.HOSTEDCLUSTERS, "NodePool": r.NODEPOOLS}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        found = list(upstream.cases(upstream.fetch(upstream.cache())))
        metafunc.parametrize("case", found, ids=[case.id for case in found])


@pytest.fixture(scope="module", autouse=True)
def definitions(api_server: Path) -> None:
    async def apply() -> None:
        async with Client(load_config(api_server)) as client:
            await support.install(client)

    asyncio.run(apply())


async def test_upstream_agrees_whether_it_is_accepted(case: upstream.Case, client: Client, namespace: str) -> None:
    wanted = _named(case.initial, namespace)
    if case.updated is None:
        assert await _refused(client, wanted) is (case.refused and case.name not in TAKEN)
        return
    if case.patches:
        await _make_without_rules(client, wanted)
    else:
        await client.create(wanted)
    made = await client.get(KINDS[wanted["kind"]], "case", namespace)
    changed = _named(case.updated, namespace)
    changed["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    assert await _refused(client, changed, update=True) is case.refused


async def _refused(client: Client, wanted: dict[str, Any], *, update: bool = False, dry_run: bool = False) -> bool:
    try:
        await (client.replace(wanted) if update else client.create(wanted, dry_run=dry_run))
    except Invalid:
        return True
    return False


def _named(source: dict[str, Any], namespace: str) -> dict[str, Any]:
    found = copy.deepcopy(source)
    found["metadata"] = {**found.get("metadata", {}), "name": "case", "namespace": namespace}
    return found


async def _make_without_rules(client: Client, wanted: dict[str, Any]) -> None:
    """As an older version made it, before a rule was added: without any rule, then with all of them again."""
    loose = generate.crds()
    for crd in loose:
        served = crd["spec"]["versions"][0]["schema"]
        served["openAPIV3Schema"] = _without_patterns(without_rules(served["openAPIV3Schema"]))
    try:
        await support.install(client, loose)
        await _until_refused(client, wanted, False)
        await client.create(wanted)
    finally:
        await support.install(client)
        await _until_refused(client, _named(wanted, "default"), True)


async def _until_refused(client: Client, wanted: dict[str, Any], refused: bool) -> None:
    """A server goes on judging by the old definition for a moment after it took the new one."""
    while await _refused(client, wanted, dry_run=True) is not refused:
        await asyncio.sleep(0.2)


def _without_patterns(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_patterns(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_patterns(value) for key, value in node.items() if key != "pattern" or not isinstance(value, str)
    }
