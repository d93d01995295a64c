"""Asking for the update graphs of hosted clusters; nothing is asked for those that follow no channel.

What failed is asked again sooner than what was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from yarl import URL

from hcp import graph
from hcp.api import conditions as c
from hcp.errors import HcpError, sentence
from hcp.hostedcluster.asking import AGAIN, Asking
from hcp.hostedcluster.releases import Releases
from hcp.hostedcluster.update_source import Question
from hcp.hostedcluster.update_status import Updates, failed, found
from hcp.oci import documents
from hcp.oci.errors import ImageError
from hcp.oci.reference import Reference

FRESH = 900.0
SECONDS, MAX_BYTES = 60.0, 16 << 20


class UpdateReader(Asking[Question, Updates]):
    what = "update graph"

    def __init__(self, releases: Releases, ended: Callable[[str], None]) -> None:
        super().__init__(ended)
        self._releases = releases

    async def answer(self, cluster: dict[str, Any], question: Question) -> tuple[Updates, float]:
        known = await self._answer(cluster, question)
        return known, FRESH if known.verdict[0] is True else AGAIN

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
