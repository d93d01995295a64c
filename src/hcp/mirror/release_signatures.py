"""Detached signatures of releases, which clusters ask for before they update: fetched, and carried along."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from yarl import URL

from hcp.errors import HcpError
from hcp.mirror import fetch
from hcp.mirror.scope import Scope
from hcp.oci.reference import Reference

# OpenShift's releases are signed there; other publishers say where theirs are.
OPENSHIFT = "quay.io/openshift-release-dev/"
STORE = "https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release"
VARIABLE = "OCP_SIGNATURE_URL"


def store_for(ref: Reference) -> str:
    return os.environ.get(VARIABLE) or (STORE if ref.name.startswith(OPENSHIFT) else "")


async def add_signature(scope: Scope, ref: Reference, digest: str) -> None:
    """Nothing for publishers without a store. A release without one is said: clusters would refuse it."""
    store = store_for(ref)
    if not store or scope.ignore_release_signatures or digest in scope.plan.signatures:
        return
    name = f"{digest.replace(':', '=')}/signature-1"
    try:
        if "://" in store:
            data = await fetch.get(URL(f"{store.rstrip('/')}/{name}", encoded=True), scope.trust)
        else:
            data = (Path(store) / name).read_bytes()
    except (fetch.NotFetched, OSError) as error:
        raise HcpError(
            f"the signature of {ref} cannot be fetched",
            cause=str(error),
            hint=f"{VARIABLE} names another place; --ignore-release-signature mirrors the release without it",
        ) from error
    scope.plan.signatures[digest] = base64.b64encode(data).decode()
