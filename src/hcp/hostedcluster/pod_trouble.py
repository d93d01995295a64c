"""Why pods of a control plane do not come up, in a sentence that stays the same while the cause does. Pure.

A kubelet tells of one cause in several ways by turns (pulling failed, waiting to pull again; ended, waiting to start
again, running for a moment) and logs have times in them: told as it is, a condition would be written every few seconds.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.runtime.conditions import get_condition, is_true

Pod = Mapping[str, Any]
# The scheduler has not seen a volume or a node yet that is just being made.
PATIENCE = dt.timedelta(seconds=15)
_MOST = 300
_PULLING = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable")
_MISNAMED = ("InvalidImageName", "ErrImageNeverPull", "ErrImageNotFound")
_COMING = ("ContainerCreating", "PodInitializing", "")
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: )?|^(ErrImagePull|ImagePullBackOff): ')
# How klog begins a line.
_KLOG = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]*\] ?")


def told(pods: Iterable[Pod], now: dt.datetime) -> dict[str, str]:
    """By component: what is wrong with the first of its pods that is in trouble."""
    found: dict[str, str] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        meta = pod["metadata"]
        name = str((meta.get("labels") or {}).get("app") or "")
        if name not in found and not meta.get("deletionTimestamp") and (why := trouble(pod, now)):
            found[name] = f"pod {meta['name']}: {why}"
    return found


def trouble(pod: Pod, now: dt.datetime) -> str:
    """Empty while there is none, or none that would be told by now."""
    status = pod.get("status") or {}
    if is_true(status.get("conditions"), "Ready"):
        return ""
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if why := _of_container(container):
            return why[:_MOST]
    placed = get_condition(status.get("conditions"), "PodScheduled") or {}
    if placed.get("status") == "False" and _age(placed.get("lastTransitionTime"), now) > PATIENCE:
        return f"it finds no node: {placed.get('message') or placed.get('reason')}"[:_MOST]
    return ""


def no_pods(deployment: Mapping[str, Any] | None) -> str:
    """Why a Deployment is refused pods (a quota, a policy), as its controller says."""
    failure = get_condition(at(deployment, "status.conditions"), "ReplicaFailure") or {}
    return str(failure.get("message") or "")[:_MOST] if failure.get("status") == "True" else ""


def _of_container(container: Mapping[str, Any]) -> str:
    name, state = container.get("name"), container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in (*_PULLING, *_MISNAMED):
        cause = _cause(message)
        return f"image {container.get('image')} cannot be pulled{': ' + cause if cause else ''}"
    if reason not in (*_COMING, "CrashLoopBackOff"):
        return f"container {name} cannot be started: {reason}{': ' + message if message else ''}"
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if ended.get("exitCode"):
        said = _last(str(ended.get("message") or "")) or str(ended.get("reason") or "")
        return f"container {name} ends with code {ended['exitCode']}{': ' + said if said else ''}"
    return ""


def _cause(message: str) -> str:
    while match := _BACK_OFF.match(message):
        message = message[match.end() :]
    return message.strip()


def _last(output: str) -> str:
    """The last line that was said, without what is different each time."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return ""
    line = _KLOG.sub("", lines[-1])
    if line.startswith("{"):
        try:
            told = json.loads(line)
        except ValueError:
            return line
        if isinstance(told, dict):
            return ": ".join(str(told[key]) for key in ("msg", "error") if told.get(key)) or line
    return line


def _age(stamp: Any, now: dt.datetime) -> dt.timedelta:
    try:
        return now - dt.datetime.fromisoformat(str(stamp))
    except (TypeError, ValueError):
        return dt.timedelta(0)
