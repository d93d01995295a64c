"""New certificate authorities for a hosted cluster that runs, and an administrator's kubeconfig that is taken away."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from cryptography import x509
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, rests
from tests.support.hosted_pods import HostedPods
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.controlplane import certs, rotation
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.errors import ApiError, Unauthorized, Unreachable

Object = dict[str, Any]


async def annotate(client: Client, **values: str) -> None:
    keys = {
        "rotate": names.ANNOTATION_ROTATE,
        "overlap": names.ANNOTATION_ROTATION_OVERLAP,
        "revoke": names.ANNOTATION_REVOKE_ADMIN,
        "validity": names.ANNOTATION_CERTIFICATE_VALIDITY,
    }
    body = {"metadata": {"annotations": {keys[key]: value for key, value in values.items()}}}
    await client.patch(k.HOSTEDCLUSTERS, NAME, "clusters", body)


async def authority(client: Client, name: str) -> rotation.Authority:
    found = rotation.read(await client.get(k.SECRETS, name, NS))
    assert found is not None
    return found


async def finished(client: Client, mark: str) -> bool:
    found = await s.condition(client, NAME, "CertificatesUpToDate")
    return found.get("status") == "True" and mark in found["message"]


async def stage(
    client: Client,
    what: str,
    check: Callable[[], Awaitable[bool]],
    between: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Wait; when it never comes, tell how far it was."""
    try:
        await eventually(check, what, between)
    except AssertionError:
        live = await client.get(k.HOSTEDCLUSTERS, NAME, "clusters")
        raise AssertionError((what, [c for c in live["status"]["conditions"] if c["status"] != "True"])) from None


async def until_finished(client: Client, mark: str, between: Callable[[], Awaitable[None]] | None = None) -> None:
    await stage(client, "finished", lambda: finished(client, mark), between)


class Caller:
    """Somebody with a kubeconfig who asks all the time, every time on a new connection."""

    def __init__(self, config: bytes) -> None:
        self._config = config
        self.asked = 0
        self.again = 0
        self.refused: list[str] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            async with Client(untrusted_kubeconfig.load(self._config)) as client:
                try:
                    async with asyncio.timeout(10):
                        await client.get(k.NAMESPACES, "default")
                    self.asked += 1
                except Unauthorized as exc:
                    self.refused.append(str(exc))
                except (ApiError, Unreachable, TimeoutError) as exc:
                    # A single etcd that starts anew answers a moment later; a certificate that is not trusted never.
                    if "certificate" in str(exc).lower():
                        self.refused.append(str(exc))
                    self.again += 1
            await asyncio.sleep(0.02)

    async def goes_on(self) -> bool:
        """Whether it is answered at least once more from now on."""
        before = self.asked
        while self.asked == before and not self._task.done():
            await asyncio.sleep(0.05)
        return self.asked > before

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


async def works(config: bytes) -> bool:
    async with Client(untrusted_kubeconfig.load(config)) as client:
        try:
            await client.get(k.NAMESPACES, "default")
        except (Unauthorized, Unreachable):
            return False
    return True


async def test_every_authority_is_replaced_and_no_caller_is_refused(
    admin: Client,
    pods: HostedPods,
) -> None:
    chosen = [name for name in certs.AUTHORITIES if name != rotation.KUBELETS]
    before = {name: await authority(admin, name) for name in chosen}
    old = await kubeconfig(admin)
    await annotate(admin, rotate=f"{','.join(chosen)}@first", overlap="1h", validity="720h")

    async def new_client_certificates() -> bool:
        return (await authority(admin, rotation.ADMIN)).stage == rotation.REISSUING and await kubeconfig(admin) != old

    await stage(admin, "both are trusted", new_client_certificates)

    async def fetched() -> bool:
        """The kubeconfig has the new client certificate when the signer's is in it."""
        config = untrusted_kubeconfig.load(await kubeconfig(admin))
        issuer = x509.load_pem_x509_certificate(config.auth.cert_pem or b"").issuer
        signer = x509.load_pem_x509_certificate((await authority(admin, rotation.ADMIN)).active.cert_pem)
        return issuer == signer.subject

    await stage(admin, "the kubeconfig is new", fetched)
    early = Caller(await kubeconfig(admin))
    try:
        # The overlap ends when this has been seen, however long that takes.
        await eventually(lambda: works(old), "what was given out before works in the overlap")
        await annotate(admin, overlap="1s")
        await until_finished(admin, "first")
        await eventually(early.goes_on, "and whoever calls goes on")
    finally:
        await early.stop()
    assert early.refused == []
    assert early.asked > 20
    print(f"asked {early.asked}, again {early.again}, rolls {pods.rolls}")
    for name in chosen:
        after = await authority(admin, name)
        assert after.active != before[name].active, name
        assert (after.coming, after.former, after.stage) == (None, b"", ""), name
        assert before[name].active.cert_pem not in after.trusted
    # Everything was made anew by the new ones, for as long as was asked, and the old kubeconfig is worth nothing.
    found = await s.objects(admin, NS)
    s.verify_certificates(found)
    serving = x509.load_pem_x509_certificate(base64.b64decode(found[("Secret", "kas-server-crt")]["data"]["tls.crt"]))
    assert (serving.not_valid_after_utc - serving.not_valid_before_utc).days == 30
    assert not await works(old)
    assert await eventually(partial(works, await kubeconfig(admin)), "the new one works")
    untouched = await authority(admin, rotation.KUBELETS)
    assert not untouched.touched
    # Nothing is left to do: no write follows.

    async def steady() -> bool:
        before = await versions(admin)
        return await rests(admin, NAME) and await versions(admin) == before

    await eventually(steady, "nothing is written any more")


async def versions(client: Client) -> dict[tuple[str, str], str]:
    return {key: o["metadata"]["resourceVersion"] for key, o in (await s.objects(client, NS)).items()}


async def test_a_revoked_kubeconfig_opens_nothing_and_the_cluster_stays_available(
    admin: Client,
    pods: HostedPods,
) -> None:
    stolen = await kubeconfig(admin)
    await eventually(lambda: works(stolen), "it opens the cluster")
    seen: list[str] = []

    async def watch_availability() -> None:
        seen.append(str((await s.condition(admin, NAME, "Available")).get("status")))

    await annotate(admin, revoke="once")
    await until_finished(admin, "once", watch_availability)
    assert not await works(stolen)
    fresh = await kubeconfig(admin)
    assert fresh != stolen
    await eventually(lambda: works(fresh), "the new one opens it")
    assert set(seen) == {"True"}
    assert pods.rolls == ["kube-apiserver"]


async def test_an_operator_that_dies_in_between_goes_on_where_it_was(
    admin: Client,
    pods: HostedPods,
    operator: Callable[[], Running],
    server: ApiServer,
) -> None:
    running = Running.latest
    await running.stop()
    await annotate(admin, rotate="etcd-signer,root-ca@again", overlap="1s")
    before = {name: await authority(admin, name) for name in ("etcd-signer", "root-ca")}
    for writes in (1, 2, 3, 4, 6, 9, 14, 20):
        process = s.OperatorProcess(server, die_after_writes=writes)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(25):
                while not process.ended and not await finished(admin, "again"):
                    await asyncio.sleep(0.1)
        process.kill()
    last = s.OperatorProcess(server)
    try:
        await until_finished(admin, "again")
    finally:
        last.kill()
    await eventually(partial(works, await kubeconfig(admin)), "the kubeconfig works")
    for name, known in before.items():
        after = await authority(admin, name)
        assert after.active != known.active and not after.former and not after.stage
    s.verify_certificates(await s.objects(admin, NS))
