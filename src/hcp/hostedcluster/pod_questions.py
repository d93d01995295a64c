"""Pods of control planes are looked at while a part of one is short of them: its workloads only tell how many.

They are asked for then, and not followed: of a fleet that is well not one is read.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from typing import Any

from hcp.api import names
from hcp.controlplane.meta import LABEL_COMPONENT
from hcp.errors import HcpError
from hcp.hostedcluster import pod_trouble
from hcp.hostedcluster.asking import Asking
from hcp.kube import Client
from hcp.kube.resources import PODS

log = logging.getLogger(__name__)
SOON, LATER = 10.0, 60.0


class PodTroubles(Asking[tuple[str, ...], Mapping[str, str]]):
    """The question: which parts are short. The answer: what keeps their pods, where anything is known."""

    what = "pods"
    again = SOON

    def __init__(self, client: Client, ended: Callable[[str], None]) -> None:
        super().__init__(ended)
        self._client = client

    async def answer(self, cluster: dict[str, Any], question: tuple[str, ...]) -> tuple[Mapping[str, str], float]:
        meta = cluster["metadata"]
        hosted = names.control_plane_namespace(meta["namespace"], meta["name"])
        try:
            pods = await self._client.list(PODS, hosted, labels=LABEL_COMPONENT)
        except HcpError as exc:
            log.info("pods of a control plane cannot be looked at", extra={"ns": hosted, "error": str(exc)})
            return {}, LATER
        found = pod_trouble.told(pods, dt.datetime.now(dt.UTC))
        told = {name: why for name, why in found.items() if name in question}
        return told, LATER if told else SOON
