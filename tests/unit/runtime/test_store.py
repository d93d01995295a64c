"""Objects in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.runtime import store as stores
from hcp.runtime.store import Store, key_of, slim


def obj(name: str, version: int = 1, ns: str = "n", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": ns, "resourceVersion": str(version), "labels": labels}}


def test_keys_have_the_namespace_where_there_is_one() -> None:
    assert key_of(obj("a")) == "n/a"
    assert key_of({"metadata": {"name": "node"}}) == "node"


def test_indexes_follow_changes_and_removals() -> None:
    store = Store()
    store.put(obj("a", app="x"))
    store.add_index("app", lambda o: o["metadata"]["labels"].values())
    store.put(obj("b", app="x"))
    assert len(store.by_index("app", "x")) == 2
    store.put(obj("a", 2, app="y"))
    assert [key_of(o) for o in store.by_index("app", "y")] == ["n/a"]
    store.remove("n/b")
    assert store.by_index("app", "x") == []
    assert store.list("other") == []
    assert [key_of(o) for o in store.list("n")] == ["n/a"]


def test_a_new_list_reports_only_what_differs_deletions_first() -> None:
    store = Store()
    store.replace([obj("same"), obj("changed"), obj("gone")])
    changes = store.replace([obj("same"), obj("changed", 2), obj("new")])
    told = [(old and key_of(old), new and key_of(new)) for old, new in changes]
    assert told == [("n/gone", None), ("n/changed", "n/changed"), (None, "n/new")]


def test_older_versions_do_not_replace_newer_ones() -> None:
    store = Store()
    store.put(obj("a", 10))
    assert not store.is_newer(obj("a", 9))
    assert not store.is_newer(obj("a", 10))
    assert store.is_newer(obj("a", 11))


def test_only_the_record_of_applied_fields_is_kept() -> None:
    one = obj("a")
    one["metadata"]["managedFields"] = [
        {"manager": "kubelet", "operation": "Update"},
        {"manager": "hcp", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
    ]
    kept = [{"manager": "hcp", "operation": "Apply", "fieldsV1": '{"f:spec":{}}'}]
    assert slim(one)["metadata"]["managedFields"] == kept
    assert slim(one)["metadata"]["managedFields"] == kept
    two = obj("b")
    two["metadata"]["managedFields"] = [{"manager": "kubelet", "operation": "Update"}]
    assert "managedFields" not in slim(two)["metadata"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz"), st.booleans())))
def test_an_index_always_equals_a_scan(steps: list[tuple[str, str, bool]]) -> None:
    store = Store()
    store.add_index("app", lambda o: o["metadata"]["labels"].values())
    for name, app, remove in steps:
        if remove:
            store.remove(f"n/{name}")
        else:
            store.put(obj(name, app=app))
    for app in "xyz":
        scanned = {key_of(o) for o in store.list(None) if o["metadata"]["labels"]["app"] == app}
        assert {key_of(o) for o in store.by_index("app", app)} == scanned
    assert len(store.list("n")) == len(store)


def test_what_two_objects_say_alike_is_in_memory_once() -> None:
    store = Store()
    for name in ("a", "b"):
        made = json.loads(json.dumps({**obj(name, app="kube-apiserver"), "data": {"long": "x" * 500, "n": 1}}))
        assert store.put(made)[1] == made
    one, other = (store.get(f"n/{name}") or {} for name in ("a", "b"))
    assert one["metadata"]["labels"]["app"] is other["metadata"]["labels"]["app"]
    assert all(mine is theirs for mine, theirs in zip(one["metadata"], other["metadata"], strict=True))


def test_nothing_is_shared_where_that_would_keep_it_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_FREED", False)
    made = json.loads(json.dumps(obj("a", app="kube-apiserver")))
    store = Store()
    assert store.put(made)[1] is made
    assert store.get("n/a") is made
