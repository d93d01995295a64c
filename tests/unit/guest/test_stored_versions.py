"""Which kinds are stored anew, as discovery and definitions tell it."""

from __future__ import annotations

from typing import Any

from hcp.guest.migration import State
from hcp.guest.migration_record import Move, Record
from hcp.guest.stored_versions import chosen, defined_kind, fingerprint

VERBS = ["get", "list", "patch"]


def served(version: str, name: str, kind: str, written: str, verbs: list[str] | None = None) -> dict[str, Any]:
    one: dict[str, Any] = {"name": name, "kind": kind, "namespaced": True, "verbs": VERBS if verbs is None else verbs}
    return {"groupVersion": version, "resources": [{**one, **({"storageVersionHash": written} if written else {})}]}


def test_a_kind_is_asked_for_in_the_version_that_is_written() -> None:
    written = fingerprint("autoscaling", "v1", "Scaler")
    lists = [served(f"autoscaling/{v}", "scalers", "Scaler", written) for v in ("v2", "v1", "v2beta1")]
    (kind,) = chosen(lists)
    assert (kind.resource.version, kind.written) == ("v1", written)


def test_a_kind_written_in_a_version_that_is_not_served_is_asked_for_in_the_preferred_one() -> None:
    lists = [served(f"apps/{v}", "sets", "Set", "somehash") for v in ("v2", "v1")]
    (kind,) = chosen(lists)
    assert kind.resource.version == "v2"


def test_what_is_not_stored_or_ends_by_itself_is_left_out() -> None:
    assert chosen([served("authentication.k8s.io/v1", "tokenreviews", "TokenReview", "")]) == []
    assert chosen([served("apps/v1", "deployments/scale", "Scale", "hash", ["get", "patch"])]) == []
    assert chosen([served("events.k8s.io/v1", "events", "Event", "hash")]) == []


def definition(stored: list[str], *, v1: bool = True, v2: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": "things.example.test", "generation": 3},
        "spec": {
            "group": "example.test",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": v1, "storage": False},
                {"name": "v2", "served": v2, "storage": True},
            ],
        },
        "status": {"storedVersions": stored},
    }


def test_a_definition_whose_objects_lie_in_one_version_is_left_alone() -> None:
    assert defined_kind(definition(["v2"])) is None
    assert defined_kind({**definition([]), "status": {}}) is None
    gone = definition(["v1", "v2"])
    gone["metadata"]["deletionTimestamp"] = "now"
    assert defined_kind(gone) is None


def test_a_definition_with_objects_in_an_earlier_version_is_gone_through_in_one_that_is_served() -> None:
    both = defined_kind(definition(["v1", "v2"]))
    assert both is not None
    assert (both.resource.version, both.generation) == ("v2", 3)
    hidden = defined_kind(definition(["v1", "v2"], v2=False))
    assert hidden is not None
    assert hidden.resource.version == "v1"
    assert defined_kind(definition(["v1", "v2"], v1=False, v2=False)) is None, "nobody can ask for it"


def test_a_record_of_the_minor_just_left_is_built_upon_and_no_other() -> None:
    known = Record("1.35@a", "1.35", complete=True, done={"sets.apps": "hash"})
    assert known.following(Move("1.36", "1.36@b", "1.35")).done == {"sets.apps": "hash"}
    assert known.following(Move("1.36", "1.36@b", "")).done == {}
    assert known.following(Move("1.37", "1.37@b", "1.36")).done == {}
    assert Record("1.35@a", "1.35", done={"sets.apps": "h"}).following(Move("1.36", "1.36@b", "1.35")).done == {}
    assert known.following(Move("1.35", "1.35@a", "1.34")) == known


def test_what_is_told_is_of_the_minor_that_was_asked_for() -> None:
    move = Move("1.36", "1.36@b", "1.35")
    assert State().told(move) is None
    assert State(Record()).told(None) is None
    begun = State(Record("1.35@a", "1.35", complete=True)).told(move)
    assert begun is not None
    assert not begun.complete
    refused = {f"kind-{number}": "no" for number in range(7)}
    told = State(Record("1.36@b", "1.36", refused=refused)).told(move)
    assert told is not None
    assert told.refused.endswith("and 2 kinds more")
