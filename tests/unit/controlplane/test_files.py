from __future__ import annotations

import base64
import json

from tests.support.unit.controlplane import params

from hcp.controlplane import apiserver, apiserver_config, audit, controller_manager, etcd_members
from hcp.controlplane.namespace import UID_ANNOTATION, free_uid, namespace
from hcp.etcd.membership import Record


def test_encryption_writes_with_the_first_key_and_reads_plain_text() -> None:
    config = apiserver_config.encryption([b"a" * 32, b"b" * 32])
    providers = config["resources"][0]["providers"]
    assert [k["secret"] for k in providers[0]["aescbc"]["keys"]] == [
        base64.b64encode(c * 32).decode() for c in (b"a", b"b")
    ]
    assert providers[-1] == {"identity": {}}
    assert apiserver_config.key_name(b"a" * 32) != apiserver_config.key_name(b"b" * 32)


def test_audit_never_logs_secrets_and_can_be_turned_off() -> None:
    policy = audit.policy(params())
    secrets = [r for r in policy["rules"] if any("secrets" in x["resources"] for x in r.get("resources", []))]
    assert [r["level"] for r in secrets] == ["Metadata"]
    off = audit.policy(params(api_config={"audit": {"profile": "None"}}))
    assert off["rules"] == [{"level": "None"}]


def test_the_cluster_is_reached_through_the_socket_only() -> None:
    selections = {s["name"]: s["connection"] for s in apiserver_config.egress_selector()["egressSelections"]}
    assert selections["cluster"]["transport"]["uds"]["udsName"] == apiserver_config.UDS_NAME
    assert selections["etcd"]["proxyProtocol"] == "Direct"


def test_arguments_carry_the_networks() -> None:
    p = params(cluster_networks=("10.0.0.0/16",), service_networks=("172.30.0.0/16",), host_prefixes=(24,))
    assert "--service-cluster-ip-range=172.30.0.0/16" in apiserver.arguments(p)
    assert "--cluster-cidr=10.0.0.0/16" in controller_manager.arguments(p)
    assert "--node-cidr-mask-size=24" in controller_manager.arguments(p)
    assert not [a for a in controller_manager.arguments(params(allocate_node_cidrs=False)) if "mask-size" in a]


def test_etcd_members_know_each_other() -> None:
    founding = etcd_members.manifest(params(highly_available=True), Record(3, founding=True))
    assert founding["data"]["members"].count("etcd-discovery.clusters-demo.svc:2380") == 3


def test_user_ids_are_never_given_twice() -> None:
    assert free_uid([]) == 1001
    assert free_uid([1001, 1003]) == 1002


def test_namespace_allows_vms_only_where_they_run() -> None:
    inside, outside = namespace(params()), namespace(params(vms_inside=False))
    enforce = "pod-security.kubernetes.io/enforce"
    assert inside["metadata"]["labels"][enforce] == "baseline"
    assert outside["metadata"]["labels"][enforce] == "restricted"
    assert inside["metadata"]["annotations"][UID_ANNOTATION] == "1003"


def test_files_are_json() -> None:
    for text in apiserver_config.config(params())["data"].values():
        json.loads(text)
