"""Why pods of a control plane do not come up: one sentence for one cause, however the kubelet puts it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hcp.hostedcluster.pod_trouble import no_pods, told, trouble

NOW = dt.datetime(2026, 1, 1, 0, 10, tzinfo=dt.UTC)
IMAGE = "registry.example/kube-apiserver@sha256:1"
CAUSE = 'failed to pull and unpack image "x": not found'


def pod(name: str = "kube-apiserver-a", *, ready: str = "False", app: str = "kube-apiserver", **state: Any) -> Any:
    container = {"name": "kube-apiserver", "image": IMAGE, "state": {}, **state}
    return {
        "metadata": {"name": name, "labels": {"app": app}},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [container]},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


@pytest.mark.parametrize(
    "state",
    [
        waiting("ErrImagePull", CAUSE),
        waiting("ImagePullBackOff", f'Back-off pulling image "x": ErrImagePull: {CAUSE}'),
    ],
)
def test_an_image_that_cannot_be_pulled_is_told_in_one_way(state: dict[str, Any]) -> None:
    assert trouble(pod(state=state), NOW) == f"image {IMAGE} cannot be pulled: {CAUSE}"


def test_an_older_kubelet_that_does_not_tell_the_cause_again_still_names_the_image() -> None:
    state = waiting("ImagePullBackOff", 'Back-off pulling image "x"')
    assert trouble(pod(state=state), NOW) == f"image {IMAGE} cannot be pulled"


LOGS = [
    "I1118 21:47:01.000001       1 server.go:1] starting\n"
    'E1118 21:47:22.081712       1 run.go:72] "command failed" err="no"',
    'E1118 21:49:59.999999       1 run.go:72] "command failed" err="no"\n\n',
]


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("now", ["ended", "waits", "runs"])
def test_a_container_that_ends_again_and_again_is_told_with_what_it_said_last(log: str, now: str) -> None:
    last = ended(1, log)
    state: dict[str, Any] = {
        "ended": {"state": last},
        "waits": {"state": waiting("CrashLoopBackOff", "back-off 40s restarting"), "lastState": last},
        "runs": {"state": {"running": {}}, "lastState": last},
    }[now]
    assert trouble(pod(**state), NOW) == 'container kube-apiserver ends with code 1: "command failed" err="no"'


def test_what_etcd_says_is_read_out_of_its_json() -> None:
    line = '{"level":"fatal","ts":"2026-01-01T00:00:00Z","msg":"discovery failed","error":"no such member"}'
    found = trouble(pod(state=waiting("CrashLoopBackOff"), lastState=ended(1, line)), NOW)
    assert found == "container kube-apiserver ends with code 1: discovery failed: no such member"
    killed = pod(state=waiting("CrashLoopBackOff"), lastState=ended(137, reason="OOMKilled"))
    assert trouble(killed, NOW) == "container kube-apiserver ends with code 137: OOMKilled"


def test_what_cannot_be_started_is_told_as_the_kubelet_does() -> None:
    state = waiting("CreateContainerConfigError", 'secret "x" not found')
    expected = 'container kube-apiserver cannot be started: CreateContainerConfigError: secret "x" not found'
    assert trouble(pod(state=state), NOW) == expected


@pytest.mark.parametrize(
    "fine",
    [
        pod(state=waiting("ContainerCreating")),
        pod(state={"running": {}}),
        pod(state={"running": {}}, lastState=ended(1, "x"), ready="True"),
        pod(state={"running": {}}, lastState=ended(0)),
        {"metadata": {"name": "new"}},
    ],
)
def test_what_is_coming_or_has_come_is_no_trouble(fine: dict[str, Any]) -> None:
    assert trouble(fine, NOW) == ""


@pytest.mark.parametrize(("since", "said"), [("00:09:55", ""), ("00:09:00", "it finds no node: too little memory")])
def test_a_pod_without_a_node_is_told_once_it_has_waited(since: str, said: str) -> None:
    made = pod()
    stamp = f"2026-01-01T{since}Z"
    made["status"]["conditions"].append(
        {"type": "PodScheduled", "status": "False", "message": "too little memory", "lastTransitionTime": stamp}
    )
    assert trouble(made, NOW) == said


def test_each_part_names_its_first_pod_in_trouble_and_none_that_goes() -> None:
    bad = waiting("ErrImagePull", CAUSE)
    going = pod("etcd-0", app="etcd", state=bad)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = told([pod("b", state=bad), pod("a", state=bad), going, pod("etcd-1", app="etcd", state=bad)], NOW)
    expected = f"image {IMAGE} cannot be pulled: {CAUSE}"
    assert found == {"kube-apiserver": f"pod a: {expected}", "etcd": f"pod etcd-1: {expected}"}


def test_a_deployment_that_is_refused_pods_tells_why() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: hosted"}
    assert no_pods({"status": {"conditions": [failure]}}) == "exceeded quota: hosted"
    assert no_pods({"status": {"conditions": [{**failure, "status": "False"}]}}) == no_pods(None) == ""
