"""The form of the JSON patch a user may hang on a cluster's VMs, checked before it is stored."""

from __future__ import annotations

import json

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def problem(text: str) -> str:
    """Why the text is not a JSON patch, or nothing."""
    try:
        steps = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"the patch is not JSON: {error}"
    if not isinstance(steps, list):
        return "the patch is not a list of operations"
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict) or step.get("op") not in OPERATIONS:
            return f"operation {number} has no op out of {', '.join(OPERATIONS)}"
        if not isinstance(step.get("path"), str) or (step["path"] and step["path"][0] != "/"):
            return f"operation {number} has no path that begins with /"
        if step["op"] in ("add", "replace", "test") and "value" not in step:
            return f"operation {number} ({step['op']}) has no value"
        if step["op"] in ("move", "copy") and not isinstance(step.get("from"), str):
            return f"operation {number} ({step['op']}) has no from"
    return ""
