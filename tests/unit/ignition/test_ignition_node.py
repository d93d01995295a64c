import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from hcp.errors import HcpError
from hcp.ignition.apiproxy import ApiProxy, api_proxy_document, haproxy_config, static_pod
from hcp.ignition.document import read_data_url
from hcp.ignition.machineconfig import interpret, joined, machine_config, normalised
from hcp.ignition.mirrors import MirrorRule, mirror_host, registry_files
from hcp.ignition.node import NodeInput, cluster_dns, node_document, rendered, ssh_document
from hcp.ignition.pointer import Proxy, pointer

PROXY = ApiProxy("172.20.0.1", 6443, "api.example.com", 443, "registry.example.com/haproxy@sha256:1")


def given_input(raw: str = "", **more: Any) -> NodeInput:
    return NodeInput(
        raw_config=raw,
        bootstrap_kubeconfig="kind: Config",
        kubelet_client_ca="CA",
        service_network=["172.31.0.0/16"],
        pause_image="registry.example.com/pause@sha256:2",
        **more,
    )


def files_of(document: dict[str, Any]) -> dict[str, str]:
    return {
        entry["path"]: read_data_url(entry["contents"]["source"]).decode() for entry in document["storage"]["files"]
    }


def units_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in document["systemd"]["units"]}


def test_a_node_gets_everything_it_needs() -> None:
    files = files_of(node_document(given_input(pull_secret="{}", trust_bundle="PEM")))
    kubelet = yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])
    assert kubelet["clusterDNS"] == ["172.31.0.10"]
    assert kubelet["rotateCertificates"] and kubelet["serverTLSBootstrap"]
    assert files["/etc/kubernetes/bootstrap-kubeconfig"] == "kind: Config"
    assert files["/usr/local/share/ca-certificates/cluster-trust-bundle.crt"] == "PEM"
    assert files["/var/lib/kubelet/config.json"] == "{}"
    assert "registry.example.com/pause@sha256:2" in files["/etc/containerd/conf.d/10-release.toml"]
    assert set(units_of(node_document(given_input()))) == {"kubelet.service"}
    assert "cluster-trust.service" in units_of(node_document(given_input(trust_bundle="PEM")))


def test_the_node_has_the_name_of_its_machine() -> None:
    document = node_document(given_input())
    assert "--hostname-override=%H" in units_of(document)["kubelet.service"]["contents"]


def test_a_node_with_ipv6_says_which_addresses_it_has() -> None:
    both = replace(given_input(), service_network=["172.31.0.0/16", "fd02::/112"], cluster_network=["10.1.0.0/16"])
    units = units_of(node_document(both))
    assert "$NODE_ADDRESSES" in units["kubelet.service"]["contents"]
    assert "EnvironmentFile=-/run/node-addresses.env\n" in units["kubelet.service"]["contents"]
    assert "--ipv6" in units["node-addresses.service"]["contents"]
    assert "for family in 4 6;" in files_of(node_document(both))["/etc/kubernetes/node-addresses.sh"]
    kubelet = yaml.safe_load(files_of(node_document(both))["/etc/kubernetes/kubelet.yaml"])
    assert kubelet["clusterDNS"] == ["172.31.0.10", "fd02::a"]


def test_a_node_with_ipv4_alone_has_nothing_of_it() -> None:
    four = given_input(cluster_network=["10.132.0.0/14"])
    assert rendered(four) == rendered(given_input())
    assert b"NODE_ADDRESSES" not in rendered(four)


def test_user_configuration_wins() -> None:
    mc = machine_config(
        "50-mine",
        {
            "ignition": {"version": "3.2.0"},
            "storage": {"files": [{"path": "/etc/kubernetes/kubelet-ca.crt", "contents": {"source": "data:,mine"}}]},
        },
    )
    kc = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "k"}}
    raw = joined([yaml.safe_dump(mc), yaml.safe_dump({**kc, "spec": {"kubeletConfig": {"maxPods": 42}}})])
    files = files_of(node_document(given_input(raw)))
    assert files["/etc/kubernetes/kubelet-ca.crt"] == "mine"
    assert yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])["maxPods"] == 42


def test_equal_input_gives_equal_bytes() -> None:
    assert rendered(given_input()) == rendered(given_input())
    assert json.loads(rendered(given_input()))["ignition"] == {"version": "3.2.0"}


def test_user_documents_are_labelled_and_unknown_kinds_refused() -> None:
    [text] = normalised("kind: MachineConfig\nmetadata: {name: a}", "ConfigMap x")
    assert "machineconfiguration.openshift.io/role: worker" in text
    [text] = normalised("kind: KubeletConfig\nmetadata: {name: a}", "ConfigMap x")
    assert "mco-built-in" in text
    for bad in ("kind: Pod", "- a", "a: ["):
        with pytest.raises(HcpError):
            normalised(bad, "ConfigMap x")


def test_what_cannot_be_followed_is_named() -> None:
    with pytest.raises(HcpError, match="osImageURL"):
        interpret("kind: MachineConfig\nmetadata: {name: a}\nspec: {osImageURL: x}")
    with pytest.raises(HcpError, match="overlaySize"):
        interpret("kind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: {overlaySize: 3G}}")
    with pytest.raises(HcpError, match="Ignition version"):
        interpret("kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 2.2.0}}}")


def test_runtime_and_mirror_kinds_reach_the_node() -> None:
    raw = (
        "kind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: {pidsLimit: 99}}\n---\n"
        "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: quay.io/a, mirrors: [m.example.com/x/a]}]}"
    )
    files = files_of(node_document(given_input(raw)))
    assert yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])["podPidsLimit"] == 99
    hosts = files["/etc/containerd/certs.d/quay.io/hosts.toml"]
    assert '[host."https://m.example.com/v2/x"]' in hosts and "override_path = true" in hosts


def test_mirror_addresses() -> None:
    assert mirror_host("quay.io/a", "m/a") == ("https://m", False)
    assert mirror_host("quay.io", "m:5000") == ("https://m:5000", False)
    assert mirror_host("quay.io", "m/p") == ("https://m/v2/p", True)
    assert mirror_host("quay.io/a/b", "m/p/a/b") == ("https://m/v2/p", True)
    assert mirror_host("quay.io/a", "m/b") is None


def test_mirrors_are_asked_by_the_node_itself_first() -> None:
    raw = (
        "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: ["
        "{source: quay.io/a, mirrors: [m.example.com/b]}, {source: '*.b.io', mirrors: [m/c]}]}"
    )
    document = node_document(given_input(raw, pull_secret="{}", registry_authorities={"r.test:5000": "PEM"}))
    files, units = files_of(document), units_of(document)
    assert json.loads(files["/etc/containerd/mirrors.json"]) == {
        "listen": "127.0.0.1:2953",
        "rules": [{"source": "quay.io/a", "mirrors": ["m.example.com/b"]}, {"source": "*.b.io", "mirrors": ["m/c"]}],
        "authorities": {"r.test:5000": "/etc/containerd/certs.d/r.test:5000/ca.crt"},
    }
    assert "LoadCredential=pull-secret:/var/lib/kubelet/config.json" in units["mirror-proxy.service"]["contents"]
    for registry in ("quay.io", "_default", "r.test:5000"):
        assert '[host."http://127.0.0.1:2953"]' in files[f"/etc/containerd/certs.d/{registry}/hosts.toml"]
    assert "m.example.com" not in files["/etc/containerd/certs.d/quay.io/hosts.toml"], "containerd cannot rename"
    assert "server" not in files["/etc/containerd/certs.d/_default/hosts.toml"]


def test_a_cluster_without_mirrors_runs_no_server_for_them() -> None:
    document = node_document(given_input(pull_secret="{}", registry_authorities={"r.test:5000": "PEM"}))
    assert "mirror-proxy.service" not in units_of(document)
    assert "127.0.0.1" not in files_of(document)["/etc/containerd/certs.d/r.test:5000/hosts.toml"]


def test_registry_authorities_are_trusted_on_mirrors_too() -> None:
    entries = registry_files([MirrorRule("quay.io/a", ("r.test:5000/a",))], {"r.test:5000": "PEM"})
    files = {entry["path"]: read_data_url(entry["contents"]["source"]).decode() for entry in entries}
    assert files["/etc/containerd/certs.d/r.test:5000/ca.crt"] == "PEM"
    assert 'ca = "/etc/containerd/certs.d/r.test:5000/ca.crt"' in files["/etc/containerd/certs.d/quay.io/hosts.toml"]
    assert 'server = "https://r.test:5000"' in files["/etc/containerd/certs.d/r.test:5000/hosts.toml"]


def test_api_proxy() -> None:
    assert "bind 172.20.0.1:6443" in haproxy_config(PROXY)
    assert "server controlplane api.example.com:443 check inter 10s fall 3 rise 3" in haproxy_config(PROXY)
    assert static_pod(PROXY)["spec"]["hostNetwork"]
    unit = units_of(api_proxy_document(PROXY))["apiserver-ip.service"]["contents"]
    assert "ip address replace 172.20.0.1/32 dev lo" in unit
    assert "unique-id" not in haproxy_config(PROXY)
    named = haproxy_config(replace(PROXY, named="api.example.com"))
    assert "  unique-id-format api.example.com\n  default_backend remote_apiserver" in named
    assert named.rstrip().endswith("send-proxy-v2 proxy-v2-options unique-id")
    six = ApiProxy("fd00::1", 6443, "fd01::5", 6443, "i")
    assert "bind [fd00::1]:6443" in haproxy_config(six)
    assert "fd00::1/128" in units_of(api_proxy_document(six))["apiserver-ip.service"]["contents"]


def test_ssh_key() -> None:
    document = ssh_document("ssh-ed25519 AAAA me\n\n")
    assert document["passwd"]["users"][0]["sshAuthorizedKeys"] == ["ssh-ed25519 AAAA me"]
    assert ssh_document("")["passwd"]["users"] == []


def test_dns_address() -> None:
    assert cluster_dns(["172.31.0.0/16", "fd02::/112"]) == ["172.31.0.10", "fd02::a"]
    with pytest.raises(HcpError):
        cluster_dns(["10.0.0.0/30"])


def test_pointer() -> None:
    text = pointer("ign.example.com", b"PEM", "tok", "clusters/np", "0a1b2c3d", Proxy(https="http://p:3128"))
    ignition = json.loads(text)["ignition"]
    [merge] = ignition["config"]["merge"]
    assert merge["source"] == "https://ign.example.com/ignition"
    assert {h["name"]: h["value"] for h in merge["httpHeaders"]} == {
        "Authorization": "Bearer dG9r",
        "NodePool": "clusters/np",
        "TargetConfigVersionHash": "0a1b2c3d",
    }
    assert ignition["proxy"]["httpsProxy"] == "http://p:3128"
    assert ".svc" in ignition["proxy"]["noProxy"]
    [authority] = ignition["security"]["tls"]["certificateAuthorities"]
    assert read_data_url(authority["source"]) == b"PEM"
