"""What the reference says about changes is complete, and is what the builders do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.unit import controlplane as rendered
from tests.support.unit import hostedcluster as sample
from tools.docs import fields

from hcp.api import effects
from hcp.controlplane import apiserver_config, certs, scheduler
from hcp.controlplane.params import Params
from hcp.hostedcluster.translate import params

LATER = "another"
# What is copied from Secrets and ConfigMaps is rolled by its hash; these say which, without one.
BY_HASH = {"serviceAccountSigningKey", "secretEncryption"}
CHANGES: dict[str, Any] = {
    "controlPlaneRelease": {"image": "registry.example/release:2"},
    "kubeAPIServerDNSName": "api.example.com",
    "controllerAvailabilityPolicy": "HighlyAvailable",
    "infrastructureAvailabilityPolicy": "HighlyAvailable",
    "pullSecret": {"name": LATER},
    "sshKey": {"name": LATER},
    "configuration.apiServer.audit": {"profile": "AllRequestBodies"},
    "configuration.apiServer.clientCA": {"name": LATER},
    "configuration.apiServer.tlsSecurityProfile": {"type": "Modern"},
    "configuration.image.additionalTrustedCA": {"name": LATER},
    "configuration.scheduler.profile": "HighNodeUtilization",
    "configuration.authentication": {"type": "OIDC"},
    "configuration.ingress.appsDomain": "apps.bank.test",
    "configuration.network.serviceNodePortRange": "31000-32000",
    "configuration.oauth": {"identityProviders": [{"name": "users", "type": "HTPasswd"}]},
    "configuration.proxy.httpProxy": "http://proxy.example.com:3128",
    "configuration.proxy.httpsProxy": "http://proxy.example.com:3128",
    "configuration.proxy.noProxy": "example.com",
    "configuration.proxy.trustedCA": {"name": LATER},
    "auditWebhook": {"name": LATER},
    "imageContentSources": [{"source": "registry.example", "mirrors": ["mirror.example"]}],
    "additionalTrustBundle": {"name": LATER},
    "pausedUntil": "true",
    "nodeSelector": {"example.com/pool": "control"},
    "tolerations": [{"key": "example.com/pool", "operator": "Exists"}],
    "labels": {"example.com/team": "one"},
    "networking.apiServer.allowedCIDRBlocks": ["192.0.2.0/24"],
    "dns.baseDomain": "example.com",
    "configuration.operatorhub": {"disableAllDefaultSources": True},
    "capabilities": {"disabled": ["Ingress"]},
    "channel": "stable-1.36",
    "autoscaling": {"maxNodesTotal": 9},
    "monitoring.metricsSet": "All",
    "updateService": "https://updates.example.com/graph",
    "platform.kubevirt.storageDriver.manual": {
        "storageClassMapping": [{"infraStorageClassName": "fast", "guestStorageClassName": "gold"}]
    },
}


def made(**spec: Any) -> Params:
    """Parameters with all that the spec does not decide."""
    known = rendered.params()
    same: dict[str, Any] = {"images": known.images, "version": known.version, "api_endpoint": known.api_endpoint}
    return replace(params(sample.cluster(**spec)), **same, konnectivity_endpoint=known.konnectivity_endpoint)


def rolled(before: Params, after: Params) -> set[str]:
    """Parts whose pods, or the files they mount, would be others."""
    found = set()
    for old, new in zip(rendered.workloads(before), rendered.workloads(after), strict=True):
        if old["spec"]["template"] != new["spec"]["template"]:
            found.add(old["metadata"]["name"])
    if apiserver_config.config(before) != apiserver_config.config(after):
        found.add(effects.API)
    if scheduler.config(before) != scheduler.config(after):
        found.add(effects.SCHEDULER)
    if certs.leaves(before) != certs.leaves(after):
        found.add(effects.API)
    return found


def nested(path: str, value: Any) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


@pytest.mark.parametrize("path", sorted(CHANGES))
def test_the_control_plane_rolls_as_it_is_written(path: str) -> None:
    top, spec = path.partition(".")[0], nested(path, CHANGES[path])
    base = sample.BASE["spec"].get(top)
    if isinstance(base, dict) and "." in path:
        spec[top] = {**base, **spec[top]}
    after = made(**spec)
    if path == "controlPlaneRelease":  # its images are read from the release
        after = replace(after, images={name: f"{image}1" for name, image in after.images.items()})
    known = effects.HOSTEDCLUSTER[path]
    assert rolled(made(), after) == set(known.rolls)


def test_every_line_is_tried_or_told_why_not() -> None:
    by_other_means = {"release", "etcd.managed.storage.type", "etcd.unmanaged", "platform.kubevirt.credentials"}
    by_other_means |= {"configuration.apiServer.servingCerts"}
    by_other_means |= {"networking.clusterNetwork.hostPrefix"} | BY_HASH
    assert set(effects.HOSTEDCLUSTER) == set(CHANGES) | by_other_means


@pytest.mark.parametrize("kind", ["HostedCluster", "NodePool"])
def test_every_field_says_what_a_change_does(kind: str) -> None:
    schema = fields.schema_of(fields.kinds()[kind], "spec")
    assert [one.path for one in fields.fields(schema) if not fields.change(kind, one)] == []


@pytest.mark.parametrize("kind", ["HostedCluster", "NodePool"])
def test_no_line_speaks_of_a_field_that_is_not_there(kind: str) -> None:
    schema = fields.schema_of(fields.kinds()[kind], "spec")
    there = {one.path for one in fields.fields(schema)}
    assert set(effects.BY_KIND[kind]) - there == set()


@pytest.mark.parametrize("kind", sorted(fields.kinds()))
@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_has_a_meaning(kind: str, part: str) -> None:
    schema = fields.schema_of(fields.kinds()[kind], part)
    assert [one.path for one in fields.fields(schema) if not one.schema.get("description")] == []
