"""Knowing that an object is already as wanted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.runtime import quantity
from hcp.runtime.compare import is_applied, normal, project
from hcp.runtime.store import slim

DESIRED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [
            {
                "name": "a",
                "args": ["x", "y"],
                "ports": [{"containerPort": 443}],
                "resources": {"limits": {"cpu": "500m"}},
            }
        ],
        "finalizers": ["f"],
        "emptyDir": {},
    },
}
OWNED: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:containers": {
            'k:{"name":"a"}': {
                ".": {},
                "f:name": {},
                "f:args": {},
                "f:ports": {'k:{"containerPort":443,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                "f:resources": {"f:limits": {"f:cpu": {}}},
            }
        },
        "f:finalizers": {'v:"f"': {}},
        "f:emptyDir": {},
    },
}
ENTRY = {"manager": "hcp", "operation": "Apply", "fieldsV1": OWNED}


def live() -> dict[str, Any]:
    """The object as the server holds it: with defaults, other writers' fields, and our record."""
    obj = copy.deepcopy(DESIRED)
    obj["metadata"] |= {"uid": "u", "resourceVersion": "5", "managedFields": [copy.deepcopy(ENTRY)]}
    obj["metadata"]["labels"]["other"] = "theirs"
    container = obj["spec"]["containers"][0]
    container["ports"][0]["protocol"] = "TCP"
    container["imagePullPolicy"] = "Always"
    container["resources"]["limits"]["cpu"] = "0.5"
    obj["spec"]["containers"].append({"name": "injected"})
    obj["spec"]["revisionHistoryLimit"] = 10
    obj["status"] = {"replicas": 1}
    return obj


def test_defaults_and_other_writers_are_no_difference() -> None:
    assert is_applied(DESIRED, live(), "hcp", None)


def test_the_record_is_read_as_a_cache_keeps_it() -> None:
    assert is_applied(DESIRED, slim(live()), "hcp", None)


def test_without_our_record_nothing_is_applied() -> None:
    assert not is_applied(DESIRED, live(), "another", None)
    assert not is_applied(DESIRED, live(), "hcp", "status")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), 2),
        (("metadata", "labels", "app"), "x"),
        (("metadata", "labels", "new"), "x"),
        (("spec", "containers", 0, "args"), ["x"]),
        (("spec", "containers", 0, "args", 1), "z"),
        (("spec", "containers", 0, "ports", 0, "containerPort"), 444),
        (("spec", "containers", 0, "resources", "limits", "cpu"), "501m"),
        (("spec", "containers", 0, "image"), "i"),
        (("spec", "containers", 0, "name"), "b"),
        (("spec", "finalizers", 0), "g"),
        (("spec", "selector", "matchLabels"), {"app": "x"}),
        (("spec", "paused"), True),
    ],
)
def test_each_wanted_change_is_seen(path: tuple[Any, ...], value: Any) -> None:
    wanted = copy.deepcopy(DESIRED)
    place: Any = wanted
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert not is_applied(wanted, live(), "hcp", None)


@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "labels", "app"),
        ("spec", "replicas"),
        ("spec", "containers", 0, "args"),
        ("spec", "containers", 0, "ports", 0),
        ("spec", "containers", 0),
        ("spec", "finalizers", 0),
        ("spec", "emptyDir"),
    ],
)
def test_what_we_no_longer_want_is_seen(path: tuple[Any, ...]) -> None:
    wanted = copy.deepcopy(DESIRED)
    place: Any = wanted
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    assert not is_applied(wanted, live(), "hcp", None)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("spec", "replicas", 9), ("spec", "selector", {}), ("spec", "containers", []), ("metadata", "labels", {})],
)
def test_a_change_by_someone_else_is_seen(part: str, name: str, value: Any) -> None:
    now = live()
    now[part][name] = value
    assert not is_applied(DESIRED, now, "hcp", None)


def test_empty_values_that_the_server_leaves_out_are_no_difference() -> None:
    wanted = copy.deepcopy(DESIRED)
    wanted["metadata"]["annotations"] = {}
    wanted["spec"] |= {"paused": False, "nothing": None, "list": [], "text": "", "zero": 0}
    assert is_applied(wanted, live(), "hcp", None)


def test_text_of_a_secret_is_compared_as_data() -> None:
    secret = {"kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "b"}}
    assert normal(secret) == {"kind": "Secret", "data": {"a": "YQ==", "b": "Yg=="}}
    assert "stringData" in secret


def test_projection_keeps_only_what_is_spoken_about() -> None:
    assert project({"a": {"b": 1}, "l": [{"x": 1}]}, {"a": {"b": 2, "c": 3}, "l": [{"x": 5, "y": 6}]}) == {
        "a": {"b": 2},
        "l": [{"x": 5}],
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [("1000m", "1"), ("1024Mi", "1Gi"), ("0.1", "100m"), ("1e3", "1k"), (1, "1"), ("131072Ki", "128Mi")],
)
def test_amounts_in_other_words_are_equal(one: object, other: object) -> None:
    assert quantity.equal(one, other)
    assert quantity.equal(other, one)


@pytest.mark.parametrize(("one", "other"), [("1", "2"), ("1G", "1Gi"), ("a", "b"), ("", "0"), (None, "1")])
def test_different_amounts_are_not_equal(one: object, other: object) -> None:
    assert not quantity.equal(one, other)


@given(st.integers(0, 10**6))
def test_amounts_scale(n: int) -> None:
    assert quantity.equal(f"{n}", f"{n * 1000}m")
    assert quantity.equal(f"{n}Gi", f"{n * 1024}Mi")
