"""etcd and encryption at rest."""

from __future__ import annotations

from hcp.api import defaults
from hcp.api.parts import local_ref
from hcp.api.schema import MAX_NAME, Schema, anything, array, immutable, obj, quantity, rule, settled, string


def etcd() -> Schema:
    volume = obj(
        {
            "storageClassName": string(
                "StorageClass of the volume; the cluster's default when unset.",
                max_len=MAX_NAME,
                rules=[immutable("storageClassName")],
            ),
            "size": quantity("Size of the volume.", default=defaults.ETCD_SIZE, rules=[immutable("size")]),
        },
        "The volume of each etcd member.",
        default={"size": defaults.ETCD_SIZE},
        rules=[settled("storageClassName")],
    )
    storage = obj(
        {
            "type": string("Where etcd keeps its data.", enum=("PersistentVolume",), default="PersistentVolume"),
            "persistentVolume": volume,
            "restoreSnapshotURL": array(
                string(
                    max_len=1024,
                    rules=[
                        rule(
                            "self.startsWith('https://') || self.startsWith('s3://')",
                            "a snapshot URL begins with https:// or s3://",
                        )
                    ],
                ),
                "A snapshot the cluster starts from.",
                max_items=1,
                unique=True,
                rules=[immutable("restoreSnapshotURL")],
            ),
        },
        "Where a managed etcd keeps its data.",
        required=("type",),
        rules=[settled("restoreSnapshotURL")],
    )
    tls = obj(
        {"clientSecret": local_ref("Secret with etcd-client-ca.crt, etcd-client.crt and etcd-client.key.")},
        "How the control plane shows who it is.",
        required=("clientSecret",),
    )
    unmanaged = obj(
        {"endpoint": string("Address of the etcd.", max_len=255, pattern="^https://"), "tls": tls},
        "An etcd that someone else runs.",
        required=("endpoint", "tls"),
    )
    fields = {
        "managementType": string(
            "Who runs etcd.",
            enum=("Managed", "Unmanaged"),
            default="Managed",
            rules=[immutable("managementType")],
        ),
        "managed": obj({"storage": storage}, "An etcd that the operator runs.", required=("storage",)),
        "unmanaged": unmanaged,
    }
    default = {
        "managementType": "Managed",
        "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": defaults.ETCD_SIZE}}},
    }
    rules = [
        rule(
            "self.managementType == 'Managed' ? has(self.managed) : !has(self.managed)",
            "managed is required when managementType is Managed, and forbidden otherwise",
        ),
        rule(
            "self.managementType == 'Unmanaged' ? has(self.unmanaged) : !has(self.unmanaged)",
            "unmanaged is required when managementType is Unmanaged, and forbidden otherwise",
        ),
    ]
    return obj(fields, "The database of the control plane.", default=default, rules=rules)


def secret_encryption() -> Schema:
    aescbc = obj(
        {
            "activeKey": local_ref("Secret with a 32 byte key under `key`, used to write."),
            "backupKey": local_ref("Secret with a former key, used to read. Deprecated."),
        },
        "Encryption with keys from Secrets.",
        required=("activeKey",),
    )
    fields = {
        "type": string("How secrets are encrypted.", enum=("kms", "aescbc")),
        "kms": anything("Encryption by a key service of a platform."),
        "aescbc": aescbc,
    }
    rules = [
        rule(
            "self.type == 'aescbc' ? has(self.aescbc) : !has(self.aescbc)",
            "aescbc is required when type is aescbc, and forbidden otherwise",
        ),
        rule(
            "self.type == 'kms' ? has(self.kms) : !has(self.kms)",
            "kms is required when type is kms, and forbidden otherwise",
        ),
    ]
    return obj(fields, "Encryption of Secrets at rest.", required=("type",), rules=rules)
