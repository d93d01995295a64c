"""A hosted cluster that runs gets another encryption key: everything stays readable and ends up under the new one."""

from __future__ import annotations

import base64
from typing import Any

from tests.support.eventually import eventually
from tests.support.hosted_operator import hands, says
from tests.support.hosted_pods import HostedPods
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.controlplane import apiserver_config, encryption
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

NEW = b"n" * 32


async def test_a_new_key_takes_over_and_the_old_one_goes(admin: Client, pods: HostedPods) -> None:
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "namespace": "default"}}
        await guest.create({**secret, "stringData": {"word": "before"}})
        first = encryption.keys_of(await admin.get(k.SECRETS, apiserver_config.ENCRYPTION, NS))
        await admin.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "new-key", "namespace": "clusters"},
                "data": {names.ETCD_KEY_KEY: base64.b64encode(NEW).decode()},
            }
        )
        wanted = {"spec": {"secretEncryption": {"aescbc": {"activeKey": {"name": "new-key"}}}}}
        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", wanted)

        async def only_the_new_key() -> bool:
            return encryption.keys_of(await admin.get(k.SECRETS, apiserver_config.ENCRYPTION, NS)) == [NEW]

        await eventually(only_the_new_key, "only the new key", hands(admin, NS))
        await eventually(
            lambda: says(admin, NAME, "EtcdDataEncryptionUpToDate", "True"), "up to date", hands(admin, NS)
        )
        assert first != [NEW]

        async def completed() -> Any:
            told = (await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters"))["status"]["secretEncryption"]
            assert told["activeKey"]["aescbc"]["secret"] == {"name": "new-key"}
            assert "targetKey" not in told
            [change] = told["history"]
            return change if change["state"] == "Completed" else None

        change = await eventually(completed, "the change is told as done", hands(admin, NS))
        assert change["to"]["fingerprint"] == encryption.fingerprint(NEW) != change["from"]["fingerprint"]

        async def readable() -> bool:
            found = await guest.get(k.SECRETS, "kept", "default")
            return base64.b64decode(found["data"]["word"]) == b"before"

        await eventually(readable, "readable with the new key alone", hands(admin, NS))
