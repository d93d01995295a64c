"""From the flags of a command to a store and to what its files are encrypted with."""

from __future__ import annotations

import configparser
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hcp.backup import keys
from hcp.backup.sealing import Lock
from hcp.backup.stores import s3_signing
from hcp.backup.stores.base import Store
from hcp.backup.stores.choosing import choose
from hcp.cli.engine.command import Call
from hcp.cli.shared.backup_flags import LOCKS
from hcp.errors import HcpError

_DEFAULT_FILE = "~/.aws/credentials"


def lock_of(call: Call) -> Lock:
    """Without a word about it nothing is written unencrypted."""
    if call.text("passphrase-file"):
        return keys.passphrase(call.text("passphrase-file"))
    if call.text("key-file"):
        return keys.key(call.text("key-file"))
    if call.switch("no-encryption"):
        return Lock()
    raise HcpError(
        "say how the backup is encrypted",
        cause="it holds every key of the cluster, and none of " + ", ".join(f"--{one}" for one in LOCKS) + " was given",
        hint="openssl rand -base64 24 > passphrase, and --passphrase-file passphrase; keep it apart from the backups",
    )


@asynccontextmanager
async def store_of(call: Call, flag: str = "store") -> AsyncIterator[Store]:
    def bucket(name: str, prefix: str) -> Store:
        from hcp.backup.stores.s3 import Bucket

        return Bucket(name, prefix, call.text("s3-endpoint"), call.text("s3-region"), _credentials(call), _trust(call))

    store = choose(call.text(flag), bucket)
    try:
        yield store
    finally:
        await store.close()


def _trust(call: Call) -> ssl.SSLContext | None:
    path = call.text("s3-ca")
    if not path:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as exc:
        raise HcpError(f"{path} given with --s3-ca holds no CA", cause=exc.strerror or str(exc)) from None


def _credentials(call: Call) -> s3_signing.Credentials:
    given = call.text("s3-credentials")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    found = {} if given else {name: os.environ.get(name.upper(), "") for name in names}
    if not found.get(names[0]):
        found = _from_file(Path(given or _DEFAULT_FILE).expanduser(), given=bool(given))
    if not found.get(names[0]) or not found.get(names[1]):
        raise HcpError(
            "there are no credentials for the object store",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give --s3-credentials",
        )
    return s3_signing.Credentials(found[names[0]], found[names[1]], found.get(names[2], ""))


def _from_file(path: Path, *, given: bool) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with path.open() as file:
            text = file.read(64 * 1024)
        parser.read_string(text if "[" in text else f"[default]\n{text}")
    except OSError as exc:
        if given:
            raise HcpError(f"cannot read {path}", cause=exc.strerror or str(exc)) from None
        return {}
    except configparser.Error:
        raise HcpError(f"{path} is no file of credentials", hint="[default], aws_access_key_id = …") from None
    profile = os.environ.get("AWS_PROFILE") or "default"
    return dict(parser[profile]) if parser.has_section(profile) else {}
