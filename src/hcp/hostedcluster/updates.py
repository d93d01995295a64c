"""Asking for the update graphs of hosted clusters, beside their passes: a pass takes what is known and never waits.

Nothing is asked for clusters that follow no channel. What was read is believed for a while, what failed is asked again
sooner; of one namespace only a few are asked for at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from yarl import URL

from hcp import graph
from hcp.api import conditions as c
from hcp.errors import HcpError, sentence
from hcp.hostedcluster.releases import Releases
from hcp.hostedcluster.update_source import Question
from hcp.hostedcluster.update_status import Updates, failed, found
from hcp.oci import documents
from hcp.oci.errors import ImageError
from hcp.oci.reference import Reference
from hcp.runtime.store import key_of

FRESH, AGAIN = 900.0, 120.0
SECONDS, MAX_BYTES = 60.0, 16 << 20
PER_NAMESPACE = 2


@dataclass(slots=True)
class _Asked:
    question: Question
    task: asyncio.Task[None] | None = None
    answer: Updates | None = None
    due: float = 0.0


class UpdateReader:
    """What is known, by cluster."""

    def __init__(self, releases: Releases, ended: Callable[[str], None]) -> None:
        """`ended` is told the key of a cluster about which something else is known now."""
        self._releases = releases
        self._ended = ended
        self._known: dict[str, _Asked] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}

    def look(self, cluster: Mapping[str, Any], question: Question) -> tuple[Updates | None, float]:
        """What is known, None while nothing is, and in how many seconds to look again."""
        key = key_of(dict(cluster))
        known = self._known.get(key)
        if known is None or known.question != question:
            self.forget(key)
            known = self._known[key] = _Asked(question)
        clock = asyncio.get_running_loop().time()
        if known.task is None and clock >= known.due:
            known.task = asyncio.create_task(self._ask(key, dict(cluster), known), name=f"update graph of {key}")
        return known.answer, max(known.due - clock, AGAIN)

    def forget(self, key: str) -> None:
        """The cluster is gone, or follows no channel any more."""
        known = self._known.pop(key, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    async def close(self) -> None:
        tasks = [known.task for known in self._known.values() if known.task is not None]
        self._known.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, key: str, cluster: dict[str, Any], known: _Asked) -> None:
        before = known.answer
        namespace = key.partition("/")[0]
        async with self._slots.setdefault(namespace, asyncio.Semaphore(PER_NAMESPACE)):
            known.answer = await self._answer(cluster, known.question)
        wait = FRESH if known.answer.verdict[0] is True else AGAIN
        known.due = asyncio.get_running_loop().time() + wait
        known.task = None
        if known.answer != before:
            self._ended(key)

    async def _answer(self, cluster: dict[str, Any], question: Question) -> Updates:
        try:
            async with asyncio.timeout(SECONDS):
                data = await self._read(cluster, question)
            return found(await asyncio.to_thread(graph.parse, data), question.channel, question.version)
        except graph.GraphError as exc:
            return failed(c.RESPONSE_INVALID, sentence(exc))
        except (documents.DocumentRefused, documents.DocumentError, ImageError) as exc:
            refused = isinstance(exc, documents.DocumentRefused)
            return failed(c.RESPONSE_FAILED if refused else c.REMOTE_FAILED, sentence(exc))
        except TimeoutError:
            return failed(c.REMOTE_FAILED, f"The update graph was not read within {SECONDS:.0f} seconds")
        except HcpError as exc:
            return failed(c.REMOTE_FAILED, sentence(exc))

    async def _read(self, cluster: dict[str, Any], question: Question) -> bytes:
        access = await self._releases.access(cluster)
        if question.url:
            url = URL(question.url)
            limits: dict[str, Any] = {"limit": MAX_BYTES, "seconds": SECONDS / 2}
            return await documents.fetch(url, access.trust, access.policy, accept="application/json", **limits)
        client = self._releases.client(access)
        ref = Reference.parse(question.image)
        files = await client.read_files(ref, (graph.GRAPH_FILE,))
        if graph.GRAPH_FILE not in files:
            cause = f"it has no file {graph.GRAPH_FILE}"
            raise graph.GraphError(f"the image {question.image} carries no update graph", cause=cause)
        return files[graph.GRAPH_FILE]
