"""Objects as nobody should write them: made from good ones by changing one or two fields to hostile values.

The same seed makes the same objects, so that what was found can be looked at again.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any

from tests.support.crds import changed, rendered_cluster, rendered_pool

from hcp.api import generate, names
from hcp.router.crd import route_crd

Object = dict[str, Any]
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for crd in (*generate.crds(), route_crd())
}
TEXTS = (
    *("", " ", "x", "x" * 63, "x" * 64, "x" * 253, "bücher", "日本", "a\nb", 'a"b', "a'b", "a`id`", "$(id)", "{{.}}"),
    *("%s", "\u0000", "../../etc", "-", ".", "_", "a..b", "A.B", "*.example.com", "a b", "0", "-1", "true", "null"),
    *("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "999.1.1.1", "10.0.0.0/32", "0.0.0.0/0", "::/0", "10.0.0.1/8"),
    *("172.31.0.0/32", "http://127.0.0.1", "https://[::1", "ftp://x", "s3://", "1e999", "0Gi", "-1Gi", "9" * 40 + "Ei"),
    *("0s", "-1s", "9999999h", "1ns", "2030-13-45T99:99:99Z", "2030-01-02T03:04:05Z", "x@sha256:zz", "a/b:c@d"),
)
NUMBERS = (-(2**63), -1, 0, 1, 2, 63, 64, 65535, 65536, 2**31 - 1, 2**31, 2**53)
# A document of a configuration that is not what it should be.
DOCUMENTS = (
    *("", "[]", "1", "a: [", "{}", "kind: MachineConfig", "kind: MachineConfig\nspec: 1", "- - - -", "a: &a [*a]"),
    "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 2020-01-01}\nspec: {}",
    "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: x}\n"
    "spec: {config: {ignition: {version: 9.9.9}, storage: {files: [{path: 1}]}}}",
    "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nspec: {kubeletConfig: {maxPods: many}}",
    "{" * 200,
)
PATCHES = (
    *("", "{}", "1", "[1]", '[{"op": "add"}]', '[{"op": "add", "path": "x"}]', '[{"op":"remove","path":"/spec"}]'),
    '[{"op":"add","path":"/metadata/labels","value":5}]',
    '[{"op":"replace","path":"/spec/template/spec/domain","value":[]}]',
    '[{"op":"add","path":"/spec/template/spec/volumes/-","value":{"name":"x","serviceAccount":{}}}]',
    '[{"op":"copy","from":"","path":"/spec/template/spec"}]',
    '[{"op":"test","path":"/spec","value":1}]',
)


def leaves(path: str, schema: Object) -> Iterator[tuple[str, Object]]:
    fields = schema.get("properties")
    if fields:
        for name, value in fields.items():
            yield from leaves(f"{path}.{name}", value)
        return
    yield path, schema


LEAVES = {
    kind: list(leaves("spec", schema))
    for kind, schema in SCHEMAS.items()
    if kind in ("HostedCluster", "NodePool", "Route")
}
# Two line ends end a table in HAProxy's control language: what follows would be a command.
HOSTS = (
    *(
        "good.example.com",
        "a.example.com\n\nshutdown frontend tls-0\n",
        "good.example.com 9\nevil.example.com",
        "*.x.y",
    ),
    *("a" * 300 + ".example.com", "#a.example.com", "a..example.com", "bücher.example.com", "GOOD.example.com", "."),
)


def value(dice: random.Random, schema: Object) -> Any:
    kind = schema.get("type")
    if dice.random() < 0.05:
        return dice.choice([None, [], {}, [None], {"a": {"b": []}}, "x" * 10_000, *NUMBERS])
    if kind == "array":
        return [value(dice, schema["items"]) for _ in range(dice.choice([0, 1, 2, 30]))]
    if kind == "object":
        fields = schema.get("properties") or {}
        return {name: value(dice, item) for name, item in fields.items() if dice.random() < 0.7}
    if kind == "boolean":
        return dice.choice([True, False])
    if kind == "integer":
        return dice.choice(NUMBERS)
    if "enum" in schema and dice.random() < 0.8:
        return dice.choice(schema["enum"])
    return dice.choice(TEXTS)


def spoiled(dice: random.Random, good: Object) -> Object:
    bad = good
    for _ in range(dice.choice([1, 1, 2])):
        path, schema = dice.choice(LEAVES[good["kind"]])
        bad = changed(bad, path, value(dice, schema))
    return bad


def cluster(dice: random.Random, namespace: str, name: str) -> Object:
    good = rendered_cluster(namespace, name)
    good["spec"] |= {"infraID": name, "release": {"image": "127.0.0.1:1/release:1.36.3"}}
    if dice.random() < 0.3:
        good["metadata"]["annotations"] = hostile_annotations(dice)
        return good
    return spoiled(dice, good)


def hostile_annotations(dice: random.Random) -> dict[str, str]:
    """Three that we know, with what nobody should write there."""
    known = [v for k, v in vars(names).items() if k.startswith("ANNOTATION_") and isinstance(v, str)]
    return {dice.choice(known): dice.choice([*TEXTS, "x" * 50_000]) for _ in range(3)}


def route(dice: random.Random, namespace: str, name: str) -> Object:
    good: Object = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "host": f"{name}.{namespace}.example.com",
            "to": {"kind": "Service", "name": dice.choice(["mine", "nobody"])},
            "port": {"targetPort": "main"},
            "tls": {"termination": "passthrough"},
        },
    }
    if dice.random() < 0.2:
        good["metadata"]["annotations"] = hostile_annotations(dice)
    if dice.random() < 0.4:
        good["spec"][dice.choice(["host", "subdomain", "path"])] = dice.choice([*HOSTS, *TEXTS])
        return good
    return spoiled(dice, good)


def pool(dice: random.Random, namespace: str, name: str, cluster_name: str, config: str) -> Object:
    good = rendered_pool(namespace, name)
    good["spec"]["clusterName"] = cluster_name
    kind = dice.random()
    if kind < 0.25:
        good["metadata"]["annotations"] = {names.ANNOTATION_VM_JSON_PATCH: dice.choice(PATCHES)}
    elif kind < 0.35:
        good["metadata"]["annotations"] = hostile_annotations(dice)
    elif kind < 0.55:
        good["spec"]["config"] = [{"name": config}]
    else:
        return spoiled(dice, good)
    return good


def config_map(dice: random.Random, namespace: str, name: str) -> Object:
    data = {dice.choice(["config", "tuning", "x"]): dice.choice(DOCUMENTS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def secret(dice: random.Random, namespace: str, name: str) -> Object:
    keys = (".dockerconfigjson", "id_rsa.pub", "key", "kubeconfig", "webhook-kubeconfig", "old-key.pub")
    texts = (*DOCUMENTS, *TEXTS, '{"auths": 1}', '{"auths": {"x": {"auth": "%%"}}}', "-----BEGIN RSA PRIVATE KEY-----")
    data = {key: base64.b64encode(dice.choice(texts).encode()).decode() for key in dice.sample(keys, 2)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}
