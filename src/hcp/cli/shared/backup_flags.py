"""Flags of every command that reads or writes backups."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

_WHERE = "Store"
STORE_HELP = "where backups lie: a folder, or s3://BUCKET/PREFIX"
STORE = Flag("store", "string", "", STORE_HELP, metavar="place", required=True, group=_WHERE)
S3 = (
    Flag("s3-endpoint", "string", "", "address of the object store (default: AWS)", metavar="url", group=_WHERE),
    Flag("s3-region", "string", "us-east-1", "its region", metavar="region", group=_WHERE),
    Flag(
        "s3-credentials",
        "string",
        "",
        "file with aws_access_key_id and aws_secret_access_key (default: $AWS_ACCESS_KEY_ID and its like, "
        "then ~/.aws/credentials)",
        metavar="file",
        group=_WHERE,
    ),
    Flag("s3-ca", "string", "", "file with the CA of the object store", metavar="file", group=_WHERE),
)
LOCK = (
    Flag(
        "passphrase-file", "string", "", "file whose first line is the passphrase", metavar="file", group="Encryption"
    ),
    Flag("key-file", "string", "", "file with a key of 32 bytes, instead", metavar="file", group="Encryption"),
    Flag(
        "no-encryption",
        "bool",
        False,
        "backups that anybody can read who can read the store; they hold every key of the cluster",
        group="Encryption",
    ),
)
LOCKS = ("passphrase-file", "key-file", "no-encryption")
