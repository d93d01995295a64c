import datetime as dt
from typing import Any

import pytest

from hcp.api.versions import kubernetes_minor, parse_version, release_problem, skew_problem
from hcp.errors import HcpError
from hcp.ignition.apiproxy import ApiProxy
from hcp.ignition.tokens import Tokens
from hcp.nodepool import ignored_fields
from hcp.nodepool.aggregate import cidr_conflicts, machines_summary
from hcp.nodepool.config import ConfigInput, generate
from hcp.nodepool.secrets import TokenContent, belongs, expiry, read_tokens, token_secret, user_data_secret
from hcp.nodepool.validation import arch_problem, management_problem, platform_problem, scaling_problem

PROXY = ApiProxy("172.20.0.1", 6443, "api", 6443, "haproxy")
POOL: dict[str, Any] = {"metadata": {"name": "np", "namespace": "clusters"}, "spec": {}}


def config(**more: Any) -> ConfigInput:
    values: dict[str, Any] = {
        "api_proxy": PROXY,
        "fips": False,
        "ssh_key": "ssh-ed25519 A",
        "image_content_sources": [],
        "user_configs": {},
        "version": "1.36.3",
        "pull_secret_name": "pull",
        "trust_bundle_name": "",
        "configuration": {},
    }
    return ConfigInput(**{**values, **more})


def test_what_changes_which_hash() -> None:
    base = generate(config())
    assert generate(config()) == base
    newer = generate(config(version="1.36.4"))
    assert newer.target != base.target and newer.without_version == base.without_version
    renamed = generate(config(pull_secret_name="other"))
    assert renamed.target != base.target and renamed.without_version != base.without_version
    proxied = generate(config(configuration={"proxy": {"httpProxy": "http://p"}}))
    assert proxied.target != base.target and proxied.without_version == base.without_version
    user = generate(config(user_configs={"a": "kind: MachineConfig\nmetadata: {name: a}"}))
    assert user.without_version != base.without_version
    mirrored = generate(config(image_content_sources=[{"source": "quay.io", "mirrors": ["m"]}]))
    assert mirrored.without_version != base.without_version
    unrelated = generate(config(configuration={"scheduler": {"profile": "x"}}))
    assert unrelated == base


def test_bad_user_configuration_names_its_configmap() -> None:
    with pytest.raises(HcpError, match="mine"):
        generate(config(user_configs={"mine": "kind: Pod"}))


def test_token_secret_round_trip() -> None:
    made = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    content = TokenContent("img", "1.36.3", "raw", "a", "b", "c")
    secret = token_secret("ns", POOL, "hash", Tokens("t", "o", made), content, True)
    assert read_tokens(secret) == Tokens("t", "o", made)
    assert secret["metadata"]["name"] == "token-np-hash"
    assert expiry(secret) is None
    assert belongs(secret, "clusters/np") and not belongs(secret, "clusters/other")
    assert read_tokens(None) is None
    data = user_data_secret("ns", POOL, "hash", "infra", "{}")
    assert data["metadata"]["name"] == "user-data-np-hash" and set(data["data"]) == {
        "value",
        "format",
        "disableTemplating",
    }


def machine(name: str, **conditions: tuple[str, str, str]) -> dict[str, Any]:
    found = [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, (status, reason, message) in conditions.items()
    ]
    return {"metadata": {"name": name}, "status": {"conditions": found}}


def test_machines_are_summed_up() -> None:
    assert machines_summary([], "Ready", "ready", "x").message == "No Machines are created"
    good = machine("a", Ready=("True", "", ""))
    bad = machine("b", Ready=("False", "Broken", "disk"))
    assert machines_summary([good], "Ready", "ready", "x").ok
    summary = machines_summary([good, bad, machine("c")], "Ready", "ready", "WaitingForInfrastructure")
    assert summary.reason == "Broken,WaitingForInfrastructure"
    assert summary.message.splitlines() == [
        "2 of 3 machines are not ready",
        "Machine b: Broken: disk",
        "Machine c: WaitingForInfrastructure",
    ]


def test_counting_messages_are_replaced() -> None:
    bad = machine("a", Ready=("False", "R", "1 of 2 completed"), InfrastructureReady=("False", "I", "no disk"))
    assert "no disk" in machines_summary([bad], "Ready", "ready", "x").message


def test_long_messages_are_cut() -> None:
    many = [machine(f"m{i}", Ready=("False", f"R{i % 9}", "x" * 90)) for i in range(300)]
    summary = machines_summary(many, "Ready", "ready", "x")
    assert len(summary.message) < 3100 and summary.message.endswith("... message truncated")


def test_cidr_conflicts() -> None:
    def with_ip(*ips: str) -> dict[str, Any]:
        return {
            "metadata": {"name": "m"},
            "status": {"addresses": [{"type": "InternalIP", "address": ip} for ip in ips]},
        }

    assert cidr_conflicts([with_ip("10.132.0.9", "fe80::1")], ["10.132.0.0/14"])
    assert not cidr_conflicts([with_ip("10.132.0.9", "10.1.0.1")], ["10.132.0.0/14"])
    assert not cidr_conflicts([with_ip("not-an-address")], ["10.132.0.0/14"])


def test_versions() -> None:
    assert kubernetes_minor(parse_version("4.14.0")) == 27
    assert kubernetes_minor(parse_version("5.1.0")) == 37
    assert kubernetes_minor(parse_version("v1.36.3")) == 36
    one, two = parse_version("1.35.4"), parse_version("1.36.3")
    assert skew_problem(one, two) is None
    assert "newer" in str(skew_problem(two, one))
    assert "behind" in str(skew_problem(parse_version("1.32.0"), two))
    assert "older minor" in str(release_problem(one, two, two))
    assert "newer" in str(release_problem(two, None, one))
    assert "different kinds" in str(release_problem(parse_version("4.20.0"), None, two))
    with pytest.raises(HcpError):
        parse_version("latest")


def test_parts_of_a_configuration_without_effect_are_named_once() -> None:
    assert ignored_fields.followed([]) == (True, "AsExpected", "")
    valid, reason, message = ignored_fields.followed(["[vm] x", "[vm] x", "recommend of y"])
    assert (valid, reason) == (True, "FieldsNotHonoured")
    assert message == "Without effect: [vm] x; recommend of y"


def test_fields_of_a_pool_without_effect_are_named() -> None:
    assert ignored_fields.fields({"replicas": 1, "tuningConfig": [{"name": "x"}]})[:2] == (True, "AsExpected")
    spec = {
        "autoScaling": {"min": 1, "max": 2},
        "osImageStream": {"name": "rhel-10"},
    }
    honoured, reason, message = ignored_fields.fields(spec, "nobody scales")
    assert (honoured, reason) == (False, "FieldsNotHonoured")
    assert "autoScaling" not in ignored_fields.fields(spec)[2]
    assert all(field in message for field in spec)


def test_pool_problems() -> None:
    good = {"platform": {"type": "KubeVirt", "kubevirt": {"rootVolume": {"persistent": {"size": "8Gi"}}}}}
    assert platform_problem(good) is None
    for kubevirt in (
        None,
        {},
        {"rootVolume": {"type": "Persistent"}},
        {"rootVolume": {"persistent": {}}, "attachDefaultNetwork": False},
        {"rootVolume": {"persistent": {}}, "hostDevices": [{"deviceName": "x", "count": 0}]},
        {"rootVolume": {"persistent": {"size": "big"}}},
        {"rootVolume": {"persistent": {}}, "compute": {"memory": "1M"}},
    ):
        assert platform_problem({"platform": {"type": "KubeVirt", "kubevirt": kubevirt}})
    assert platform_problem({"platform": {"type": "AWS"}})
    assert "InPlace" in str(management_problem({"management": {"upgradeType": "InPlace"}}))
    zero = {"management": {"replace": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}}
    assert management_problem(zero) and management_problem({}) is None
    assert scaling_problem({"replicas": 1, "autoScaling": {"min": 1, "max": 2}})
    assert scaling_problem({"autoScaling": {"min": 3, "max": 2}})
    assert arch_problem({"arch": "arm64"}, "Multi")
    assert arch_problem({}, "S390X")
    assert arch_problem({}, "AMD64") is None


@pytest.mark.parametrize(
    "spec",
    [
        {"management": {"replace": {"rollingUpdate": {"maxSurge": 99_999_999_999}}}},
        {"management": {"replace": {"rollingUpdate": {"maxUnavailable": "x%"}}}},
        {"management": {"replace": {"rollingUpdate": {"maxUnavailable": True}}}},
        {"nodeDrainTimeout": "99999999999999h"},
        {"nodeVolumeDetachTimeout": "soon"},
    ],
)
def test_values_stored_before_there_were_bounds_are_named(spec: dict[str, Any]) -> None:
    assert "has to be" in str(management_problem(spec))
    assert management_problem({"management": {"replace": {"rollingUpdate": {"maxSurge": "25%"}}}}) is None
