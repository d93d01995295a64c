"""Bad values are refused before anything is contacted: with the flag, the value, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.unit.cli_lines import render, run

CASES = [
    # flag, value, words the refusal has to contain
    ("name", "clusters", "reserved"),
    ("name", "a.b", "dot"),
    ("name", "Demo", "RFC1123"),
    ("name", "x" * 60, "63"),
    ("namespace", "a_b", "RFC1123"),
    ("base-domain", "lab_.local", "DNS"),
    ("memory", "4GB", "quantity"),
    ("memory", "-1Gi", "above 0"),
    ("cores", "0", "at least 1"),
    ("cores", "-1", "whole number"),
    ("root-volume-size", "8", "16"),
    ("root-volume-access-modes", "ReadWriteOnce,Foo", "ReadWriteOncePod"),
    ("root-volume-access-modes", "ReadWriteOnce,", "ReadWriteMany"),
    ("root-volume-volume-mode", "block", "Block, Filesystem"),
    ("root-volume-cache-strategy", "pvc", "None, PVC"),
    ("network-multiqueue", "enable", "Enable, Disable"),
    ("qos-class", "BestEffort", "Burstable, Guaranteed"),
    ("additional-network", "ns/nad", "colon"),
    ("additional-network", "", "empty"),
    ("additional-network", "name:a,x:y", "unknown param(s): x:y"),
    ("additional-network", "name:a/b/c", "NAMESPACE/NETWORK"),
    ("additional-network", "name:", "NAMESPACE/NETWORK"),
    ("attach-default-network", "maybe", "true or false"),
    ("vm-node-selector", "a", "key=value"),
    ("vm-node-selector", "a b=c", "letters"),
    ("host-device-name", "gpu,count:0", "at least 1"),
    ("host-device-name", "gpu,count:1K", "[gpu,count:1K]"),
    ("host-device-name", "gpu,Count:1", "count:N"),
    ("host-device-name", "gpu,count:1,x", "count:N"),
    ("host-device-name", ",count:1", "empty"),
    ("infra-storage-class-mapping", "a", "INFRA/GUEST"),
    ("infra-storage-class-mapping", "a/b/c", "[a/b/c]"),
    ("infra-storage-class-mapping", "a/b,group", "group=GROUP"),
    ("infra-storage-class-mapping", "a/b,group=x=y", "group=GROUP"),
    ("infra-storage-class-mapping", "a/b,grp=x", "unknown option"),
    ("infra-storage-class-mapping", "/b", "infra class"),
    ("infra-storage-class-mapping", "a,group=x/b", "infra class"),
    ("infra-volumesnapshot-class-mapping", "a/", "volume snapshot"),
    ("toleration", "key", "field=value"),
    ("toleration", "", "invalid toleration"),
    ("toleration", "key=a=b", "invalid toleration"),
    ("toleration", "operator=like", "Exists, Equal"),
    ("toleration", "effect=Never", "PreferNoSchedule"),
    ("toleration", "tolerationSeconds=1.5", "tolerationSeconds"),
    ("toleration", "foo=bar", "unknown field [foo]"),
    ("annotations", "a", "invalid annotation: a"),
    ("annotations", "=a", "empty"),
    ("annotations", "hypershift.openshift.io/kubevirt-vm-jsonpatch={}", "list"),
    ("labels", "a", "invalid label: a"),
    ("labels", "a=b c", "letters"),
    ("labels", "-a=b", "letters"),
    ("node-selector", "a=/", "letters"),
    ("pods-labels", "x", "key=value"),
    ("cluster-cidr", "10.132.0.0", "10.132.0.0/14"),
    ("cluster-cidr", "10.132.0.0/33", "ClusterCIDR"),
    ("cluster-cidr", "172.31.0.0/24", "overlaps with"),
    ("service-cidr", "x", "ServiceCIDR"),
    ("service-cidr", "10.133.0.0/24", "overlaps"),
    ("machine-cidr", "fe80::1%eth0/64", "MachineCIDR"),
    ("machine-cidr", "10.132.1.0/24", "overlaps"),
    ("etcd-storage-size", "big", "failed to parse etcd storage size"),
    ("etcd-storage-size", "0", "above 0"),
    ("control-plane-availability-policy", "HA", "HighlyAvailable, SingleReplica"),
    ("infra-availability-policy", "HA", "HighlyAvailable, SingleReplica"),
    ("network-type", "Flannel", "OVNKubernetes, Calico, OpenShiftSDN, Other"),
    ("olm-catalog-placement", "here", "management, guest"),
    ("node-upgrade-type", "Recreate", "Replace, InPlace"),
    ("arch", "arm64", "amd64, s390x"),
    ("arch", "riscv", "amd64, s390x"),
    ("pausedUntil", "false", "true or a date"),
    ("pausedUntil", "2030-01-31", "true or a date"),
    ("feature-set", "CustomNoUpgrade", "TechPreviewNoUpgrade"),
    ("disable-cluster-capabilities", "Foo", "ImageRegistry"),
    ("disable-cluster-capabilities", "Ingress", "Console"),
    ("enable-cluster-capabilities", "console", "Console"),
    ("kas-dns-name", "a_b", "KubeAPIServerDNSName"),
    ("ovn-kubernetes-mtu", "100", "576 to 9216"),
    ("node-drain-timeout", "5", "duration"),
    ("node-drain-timeout", "-5m", "duration"),
    ("timeout", "x", "duration"),
    ("node-pool-replicas", "x", "whole number"),
    ("infra-id", "Not_Valid", "RFC1123"),
    ("ssh-key", "/nowhere", "readable file"),
    ("pull-secret", "/nowhere", "readable file"),
    ("pull-secret", "/", "readable file"),
    ("additional-trust-bundle", "/nowhere", "readable file"),
    ("image-content-sources", "/nowhere", "readable file"),
]


@pytest.mark.parametrize(("flag", "value", "words"), CASES)
def test_refused_with_flag_value_and_what_is_allowed(tmp_path: Path, flag: str, value: str, words: str) -> None:
    result = render(tmp_path, f"--{flag}={value}")
    assert result.code == 1
    assert result.out == ""
    assert f"--{flag}" in result.err
    assert value in result.err
    assert words in result.err, result.err
    assert result.err.count("Error: ") == 1
    assert "Traceback" not in result.err


TOGETHER = [
    (["--default-dual", "--cluster-cidr=10.0.0.0/16"], "[cluster-cidr default-dual] were all set"),
    (["--ssh-key=x", "--generate-ssh"], "[generate-ssh ssh-key] were all set"),
    (["--attach-default-network=false"], "missing --additional-network"),
    (["--attach-default-network", "false"], "--attach-default-network=false"),
    (["--infra-namespace=x"], "--infra-kubeconfig-file is missing"),
    (["--infra-kubeconfig-file=x"], "--infra-namespace is missing"),
    (["--allocate-node-cidrs"], "--network-type Other"),
    (["--disable-multi-network"], "--network-type Other"),
    (["--network-type=Other", "--ovn-kubernetes-mtu=9000"], "OVNKubernetes"),
    (["--disable-cluster-capabilities=baremetal", "--enable-cluster-capabilities=baremetal"], "both"),
    (["--cluster-cidr=10.0.0.0/16", "--cluster-cidr=10.1.0.0/16", "--cluster-cidr=10.2.0.0/16"], "at most two"),
    (["--service-cidr=172.30.0.0/16", "--service-cidr=172.29.0.0/16"], "two ranges of IPv4"),
    (["--wait"], "--node-pool-replicas"),
    (["--api-server-address=x"], "hypershift"),
]


@pytest.mark.parametrize(("flags", "words"), TOGETHER)
def test_flags_that_do_not_go_together(tmp_path: Path, flags: list[str], words: str) -> None:
    result = render(tmp_path, *flags)
    assert result.code == 1
    assert words in result.err


def test_the_other_name_needs_a_pull_secret_too() -> None:
    result = run("create", "cluster", "kubevirt", "--name=demo", "--render", prog="hypershift")
    assert result.code == 1
    assert "--pull-secret" in result.err


def test_words_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    result = render(tmp_path, "extra")
    assert result.code == 1
    assert 'unexpected argument "extra"' in result.err


def test_api_server_address_needs_node_ports(tmp_path: Path) -> None:
    result = render(tmp_path, "--api-server-address=x", prog="hypershift")
    assert result.code == 1
    assert "NodePort" in result.err


FILES = [
    ("pull-secret", "not json", "JSON"),
    ("pull-secret", "[]", "auths"),
    ("pull-secret", "{}", "auths"),
    ("pull-secret", '{"auths": []}', "auths"),
    ("ssh-key", "-----BEGIN RSA PRIVATE KEY-----", "private key"),
    ("ssh-key", "", "empty"),
    ("additional-trust-bundle", "hello", "// comment"),
    ("additional-trust-bundle", "-----BEGIN CERTIFICATE-----\nx\n", "complete"),
    ("additional-trust-bundle", "", "complete"),
    ("image-content-sources", "a: 1", "list"),
    ("image-content-sources", "- mirrors: [a]", "source"),
    ("image-content-sources", "- {source: a, mirrors: b}", "mirrors"),
    ("image-content-sources", "{", "YAML"),
]


@pytest.mark.parametrize(("flag", "content", "words"), FILES)
def test_files_are_checked(tmp_path: Path, flag: str, content: str, words: str) -> None:
    file = tmp_path / "given"
    file.write_text(content)
    result = render(tmp_path, f"--{flag}={file}")
    assert result.code == 1
    assert f"--{flag}" in result.err
    assert str(file) in result.err
    assert words in result.err, result.err


def test_infra_kubeconfig_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "infra"
    file.write_text("users: []")
    rendered = render(tmp_path, "--infra-namespace=x", f"--infra-kubeconfig-file={file}")
    assert rendered.code == 0
    assert "Warning" in rendered.err and "is no kubeconfig" in rendered.err
    words = ("--name=a", f"--pull-secret={tmp_path / 'pull-secret.json'}", "--infra-namespace=x")
    result = run("create", "cluster", "kubevirt", *words, f"--infra-kubeconfig-file={file}", "--kubeconfig=/nowhere")
    assert result.code == 1
    assert "there is no list of clusters" in result.err
    file.write_text("{")
    assert render(tmp_path, "--infra-namespace=x", f"--infra-kubeconfig-file={file}").code == 1


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    result = render(tmp_path, "--render-into=/nowhere/x")
    assert result.code == 1
    assert "--render-into" in result.err and "/nowhere/x" in result.err


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (["--host-device-name=a", "--host-device-name=a"], "more than once"),
        (["--infra-storage-class-mapping=a/b", "--infra-storage-class-mapping=c/b"], "more than once"),
        (["--memory=512Mi"], "less than a node needs"),
        (["--cluster-cidr=10.1.2.3/14"], "the range is 10.0.0.0/14"),
        (["--additional-network=name:nad"], "no namespace"),
        (["--default-dual"], "needs nodes with IPv6 addresses"),
        (["--external-dns-domain=x"], "Route"),
        (["--wait", "--node-pool-replicas=1"], "--wait does nothing with --render"),
    ],
)
def test_odd_but_possible_values_are_warned_about(tmp_path: Path, words: list[str], warning: str) -> None:
    result = render(tmp_path, *words)
    assert result.code == 0, result.err
    assert warning in result.err


def test_node_pools_alone() -> None:
    base = ("create", "nodepool", "kubevirt", "--render", "--cluster-name=demo")
    assert 'required flag(s) "name" not set' in run(*base).err
    for words, text in (
        (["--name=A"], "--name"),
        (["--name=a", "--replicas=-1"], "--replicas"),
        (["--name=a", "--replicas=1", "--node-count=2"], "none of the others"),
        (["--name=a", "--containerdisk=x"], "hypershift"),
        (["--name=a", "--arch=arm64"], "amd64, s390x"),
    ):
        result = run(*base, *words)
        assert result.code == 1
        assert text in result.err
