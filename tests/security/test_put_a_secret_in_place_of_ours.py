"""Secrets and ConfigMaps named like the control plane's own: none of them may take their place."""

from __future__ import annotations

import base64
import json

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp.controlplane import certs
from hcp.controlplane.params import Params
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.pki import new_signing_key

MARK = "attackers-own"
# Ours, in the hosted namespace; the attacker has all of them in a namespace of its own.
SAMPLE = Params("x", "clusters", "x", "x", "x")
OURS = sorted({spec.name for spec in certs.leaves(SAMPLE)} | {spec.authority for spec in certs.leaves(SAMPLE)})


async def test_a_name_of_ours_leads_nowhere(admin: Client, attacker: Attacker, operator: s.OperatorProcess) -> None:
    assert len(OURS) > 5
    content: dict[str, str | bytes] = {
        MARK: MARK,
        "key": b"k" * 32,
        "id_rsa__pub": "ssh-ed25519 x",
        "__dockerconfigjson": json.dumps({"auths": {}}),
        "tls__key": MARK,
        "tls__crt": MARK,
        "ca__crt": MARK,
        "ca__key": MARK,
        "kubeconfig": MARK,
    }
    for name in OURS:
        await attacker.secret(name, **content)
    await attacker.secret(OURS[1], **{**content, "key": new_signing_key()})
    references = {
        "pullSecret": {"name": OURS[0]},
        "sshKey": {"name": OURS[2]},
        "serviceAccountSigningKey": {"name": OURS[1]},
        "issuerURL": "https://issuer.example.com",
    }
    # Each of our names once as the key for what etcd stores, which used to be copied as it is.
    for number, name in enumerate(OURS):
        encryption = {"type": "aescbc", "aescbc": {"activeKey": {"name": name}}}
        if name != OURS[1]:
            await attacker.cluster(f"c{number}", secretEncryption=encryption, **references)

    for number, name in enumerate(OURS):
        if name == OURS[1]:
            continue
        hosted = attacker.hosted(f"c{number}")

        async def made(hosted: str = hosted) -> bool:
            found = {item["metadata"]["name"] for item in await admin.list(k.SECRETS, hosted)}
            return "kas-secret-encryption-config" in found and set(OURS[:3]) <= found

        await eventually(made, f"{hosted} has its keys")
        for item in await admin.list(k.SECRETS, hosted):
            data = {key: base64.b64decode(value) for key, value in item["data"].items()}
            if item["metadata"]["name"] in OURS:
                assert MARK not in data and MARK.encode() not in data.values(), item["metadata"]["name"]
