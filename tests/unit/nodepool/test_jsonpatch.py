import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.errors import HcpError
from hcp.nodepool.jsonpatch import apply_patch, parse_patch


def patched(document: object, *operations: dict[str, object]) -> object:
    return apply_patch(document, parse_patch(json.dumps(operations)))


def test_the_operations() -> None:
    assert patched({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}) == {"a": [1, 2]}
    assert patched({"a": [1]}, {"op": "add", "path": "/a/0", "value": 0}) == {"a": [0, 1]}
    assert patched({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}) == {"b": 2}
    assert patched({"a": [1, 2]}, {"op": "replace", "path": "/a/0", "value": 9}) == {"a": [9, 2]}
    assert patched({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}) == {"b": 1}
    assert patched({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}) == {"a": 1, "b": 1}
    assert patched({"a/b": {"~": 1}}, {"op": "test", "path": "/a~1b/~0", "value": 1}) == {"a/b": {"~": 1}}


def test_add_makes_missing_parents() -> None:
    assert patched({}, {"op": "add", "path": "/spec/template/x", "value": 1}) == {"spec": {"template": {"x": 1}}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "replace", "path": "/nope", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "add", "path": "/l/01", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
    ],
)
def test_what_cannot_be_done_is_said(operation: dict[str, object]) -> None:
    with pytest.raises(HcpError, match="operation 0"):
        patched({"a": 1, "l": [1]}, operation)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        "[1]",
        '[{"op":"x","path":"/a"}]',
        '[{"op":"add","value":1}]',
        '[{"op":"add","path":"/a"}]',
        '[{"op":"move","path":"/a"}]',
    ],
)
def test_bad_patches_are_refused(text: str) -> None:
    with pytest.raises(HcpError):
        parse_patch(text)


@given(st.dictionaries(st.text("abc", min_size=1), st.integers()), st.text("xyz", min_size=1), st.integers())
def test_add_then_remove_gives_back_the_original(document: dict[str, int], key: str, value: int) -> None:
    result = patched(document, {"op": "add", "path": f"/{key}", "value": value}, {"op": "remove", "path": f"/{key}"})
    assert result == document
