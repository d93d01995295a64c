"""`python -m hcp.local.node.mirrors KUBECONFIG ETC MIRROR_PROXY`: the node pulls as the cluster's mirror sets say.

What OpenShift's machine configuration does for its nodes: ImageDigestMirrorSets, ImageTagMirrorSets and
ImageContentSourcePolicies become files that containerd reads at each pull, and the authorities of
`images.config.openshift.io` with them. The Secret `pull-secret` in `openshift-config` is the node's own: the kubelet
pulls with it, and mirrors are asked with it, by the same small server as on nodes of hosted clusters. Nothing is
restarted but that server.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.api.names import CONFIG_NAMESPACE, PULL_SECRET_KEY
from hcp.api.paths import at, block
from hcp.ignition.mirror_proxy import PULL_SECRET as KUBELET_LOGIN
from hcp.ignition.mirror_proxy import mirror_proxy_config
from hcp.ignition.mirrors import MirrorRule, registry_texts
from hcp.kube import Client, load_config
from hcp.kube.errors import ApiError
from hcp.kube.resources import CONFIGMAPS, ICSP, IDMS, IMAGE_CONFIGS, ITMS, SECRETS
from hcp.local.state.spec import write_file
from hcp.local.supervisor.reaper import prepare_child
from hcp.oci import mirrors as oci_mirrors
from hcp.oci.trust import from_config_map
from hcp.runtime import Controller, Informer

Object = dict[str, Any]
PULL_SECRET = "pull-secret"
# Files without it are somebody else's, such as the embedded registry's, and stay as they are.
MARK = "# From the cluster's mirror sets and its settings for images.\n"
_NODE, _NO_LOGIN = "node", "{}"
_RESTART_SECONDS = 1.0


@dataclass(frozen=True)
class Wanted:
    """What the node shall have: files of containerd, and what its server for mirrors reads."""

    files: Mapping[str, str]
    rules: bool
    config: str
    login: str = field(repr=False)


def wanted(certs: Path, mirror_sets: Iterable[Object], authorities: Mapping[str, str], login: str) -> Wanted:
    """`authorities`: registry → PEM; `login`: the text of a pull secret."""
    listed = oci_mirrors.from_objects(mirror_sets)
    # A registry's name becomes a folder's.
    found = [MirrorRule(one.source, one.mirrors) for one in listed if one.source.partition("/")[0].strip(".")]
    texts = registry_texts(found, authorities, str(certs))
    files = {path: MARK + text if path.endswith("/hosts.toml") else text for path, text in texts.items()}
    return Wanted(files, bool(found), mirror_proxy_config(found, authorities, str(certs)), login)


def write(certs: Path, files: Mapping[str, str]) -> bool:
    """Make containerd's folder so. Says whether anything changed."""
    changed = False
    registries = {Path(path).parent.name for path in files}
    for place in sorted(certs.iterdir()):
        if place.name not in registries and _ours(place):
            shutil.rmtree(place)
            changed = True
    theirs = {name for name in registries if (certs / name / "hosts.toml").exists() and not _ours(certs / name)}
    for path, text in files.items():
        if Path(path).parent.name not in theirs:
            changed = write_file(Path(path), text, mode=0o644) or changed
    return changed


def _ours(place: Path) -> bool:
    with contextlib.suppress(OSError):
        return (place / "hosts.toml").read_text().startswith(MARK)
    return False


class Mirrors:
    """Follows everything that says where this node pulls from."""

    def __init__(self, client: Client, etc: Path, program: Path, kubelet: Path = Path(KUBELET_LOGIN)) -> None:
        self.kubelet = kubelet
        self.certs = etc / "certs.d"
        self.proxy = Proxy(program, etc / "mirrors.json", etc / "mirrors")
        self.sets = [Informer(client, kind) for kind in (IDMS, ITMS, ICSP)]
        self.images = Informer(client, IMAGE_CONFIGS)
        self.authorities = Informer(client, CONFIGMAPS, CONFIG_NAMESPACE)
        self.logins = Informer(client, SECRETS, CONFIG_NAMESPACE, fields=f"metadata.name={PULL_SECRET}")
        self.controller = Controller("mirrors", self.reconcile, workers=1)

    async def run(self) -> None:
        for informer in (*self.sets, self.images, self.authorities, self.logins):
            self.controller.watch(informer, lambda obj: [_NODE])
            await informer.start()
        self.controller.enqueue(_NODE)  # for what was taken away while nobody looked
        await self.controller.run()

    async def reconcile(self, key: str) -> None:
        sets = [one for informer in self.sets for one in informer.list()]
        shall = wanted(self.certs, sets, self._authorities(), self._login())
        if write(self.certs, shall.files):
            print(f"{len(shall.files)} files for containerd from {len(sets)} mirror sets", flush=True)
        if shall.login or self.kubelet.exists():  # the kubelet looks at it every five minutes
            write_file(self.kubelet, shall.login or _NO_LOGIN)
        await self.proxy.serve(shall)

    def _authorities(self) -> dict[str, str]:
        name = at(self.images.get("cluster"), "spec.additionalTrustedCA.name")
        found = self.authorities.get(str(name), CONFIG_NAMESPACE) if name else None
        return from_config_map(block(found, "data"))

    def _login(self) -> str:
        found = self.logins.get(PULL_SECRET, CONFIG_NAMESPACE)
        return base64.b64decode(block(found, "data").get(PULL_SECRET_KEY, "")).decode(errors="replace")


class Proxy:
    """The server between containerd and mirrors: runs while there are rules, begins anew when they change."""

    def __init__(self, program: Path, config: Path, credentials: Path) -> None:
        self._program = program
        self._config = config
        self._credentials = credentials
        self._served: Wanted | None = None
        self._running: asyncio.Task[None] | None = None

    async def serve(self, shall: Wanted) -> None:
        if shall == self._served:
            return
        await self.stop()
        self._credentials.mkdir(mode=0o700, exist_ok=True)
        write_file(self._credentials / "pull-secret", shall.login or _NO_LOGIN)
        write_file(self._config, shall.config)
        self._served = shall
        if shall.rules:
            self._running = asyncio.create_task(self._keep(), name="mirror-proxy")

    async def stop(self) -> None:
        task, self._running = self._running, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                str(self._program),
                str(self._config),
                env={**os.environ, "CREDENTIALS_DIRECTORY": str(self._credentials)},
                preexec_fn=prepare_child,
            )
            try:
                print(f"the server for mirrors ended with {await process.wait()}", flush=True)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            await asyncio.sleep(_RESTART_SECONDS)


async def main(kubeconfig: str, etc: str, program: str) -> None:
    async with Client(load_config(Path(kubeconfig)), user_agent="hcp-mirrors") as client:
        await Mirrors(client, Path(etc), Path(program)).run()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:4]))
    except (ApiError, KeyboardInterrupt) as error:
        print(error, flush=True)
        sys.exit(1)
