"""The cluster's proxy on its nodes."""

from __future__ import annotations

import json

from tests.unit.ignition.test_ignition_node import files_of, given_input, units_of

from hcp.ignition.node import node_document
from hcp.ignition.pointer import Proxy, pointer

PROXY = Proxy("http://p:80", 'http://me:a"b$c\\d%40@p:3128', ("10.0.0.0/8", "api.test"), "PEM OF THE PROXY")
RULES = "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: quay.io/a, mirrors: [m.example.com/a]}]}"


def test_what_pulls_images_knows_the_proxy_and_others_do_not_read_its_password() -> None:
    document = node_document(given_input(RULES, proxy=PROXY))
    text = files_of(document)["/etc/hcp/proxy.env"]
    assert text == (
        'HTTP_PROXY="http://p:80"\n'
        'HTTPS_PROXY="http://me:a\\"b\\$c\\\\d%40@p:3128"\n'
        'NO_PROXY=".cluster.local,.local,.svc,10.0.0.0/8,127.0.0.1,api.test,localhost"\n'
    )
    [entry] = [f for f in document["storage"]["files"] if f["path"] == "/etc/hcp/proxy.env"]
    assert entry["mode"] == 0o600
    units = units_of(document)
    for name in ("containerd.service", "kubelet.service", "mirror-proxy.service"):
        assert units[name]["dropins"][0]["contents"] == "[Service]\nEnvironmentFile=/etc/hcp/proxy.env\n"
    assert "ExecStart=kubelet" in units["kubelet.service"]["contents"], "a drop-in takes nothing away"


def test_the_proxys_authority_is_trusted_before_images_are_pulled() -> None:
    document = node_document(given_input(proxy=PROXY))
    assert files_of(document)["/usr/local/share/ca-certificates/cluster-proxy-ca.crt"] == "PEM OF THE PROXY"
    assert "cluster-trust.service" in units_of(document) and "mirror-proxy.service" not in units_of(document)
    told = json.loads(pointer("ignition.test", b"CA", "token", "a/b", "x", PROXY))["ignition"]
    assert len(told["security"]["tls"]["certificateAuthorities"]) == 2
    assert told["proxy"]["httpsProxy"] == PROXY.https


def test_a_cluster_without_a_proxy_has_nothing_of_it() -> None:
    assert node_document(given_input()) == node_document(given_input(proxy=Proxy(direct=("a",))))
    assert "/etc/hcp/proxy.env" not in files_of(node_document(given_input()))
    told = json.loads(pointer("ignition.test", b"CA", "token", "a/b", "x", Proxy(direct=("a",))))["ignition"]
    assert "proxy" not in told and len(told["security"]["tls"]["certificateAuthorities"]) == 1
