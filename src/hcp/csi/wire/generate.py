"""Makes Python modules from the published descriptions of the protocols.

setup.py runs it in the build environment, where only grpcio-tools is installed; nothing at run time does. The
descriptions are fetched from the Go module proxy (GOPROXY) and checked against the pinned sums. The same pins and the
same compiler give the same files everywhere, so a checkout, a wheel and an image are of one source.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from io import BytesIO
from pathlib import Path

from hcp.errors import HcpError
from hcp.gomodules import archive_url, module_hash

HERE = Path(__file__).resolve().parent
PACKAGE = "hcp/csi/wire"
_TRIES = 5
_STALL = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Protocol:
    name: str
    module: str
    version: str
    sum: str
    file: str

    def outputs(self, folder: Path) -> tuple[Path, Path]:
        return folder / f"{self.name}_pb2.py", folder / f"{self.name}_pb2.pyi"


def protocols() -> list[Protocol]:
    table = tomllib.loads((HERE / "protocols.toml").read_text())
    return [Protocol(name, **entry) for name, entry in table.items()]


def generate(folder: Path = HERE) -> list[str]:
    """Makes what is missing or was made from something else; the names of what was made."""
    compiler = installed_version("grpcio-tools")
    made = []
    for protocol in protocols():
        mark = f"# From {protocol.module} {protocol.version} ({protocol.sum}) by grpcio-tools {compiler}\n"
        if all(_begins_with(path, mark) for path in protocol.outputs(folder)):
            continue
        _compile(protocol, _fetch(protocol), mark, folder)
        made.append(protocol.name)
    return made


def _begins_with(path: Path, mark: str) -> bool:
    return path.is_file() and path.read_text().startswith(mark)


def _fetch(protocol: Protocol) -> bytes:
    """The description out of the module's archive, which has the pinned sum."""
    url = archive_url(protocol.module, protocol.version)
    try:
        with zipfile.ZipFile(BytesIO(_download(url))) as archive:
            found = module_hash(archive)
            if found != protocol.sum:
                raise HcpError(f"{url} has the wrong checksum", cause=f"{found}, expected {protocol.sum}")
            return archive.read(f"{protocol.module}@{protocol.version}/{protocol.file}")
    except zipfile.BadZipFile as error:
        raise HcpError(f"{url} is no module archive", cause=str(error)) from error


def _download(url: str) -> bytes:
    trouble: Exception | None = None
    for attempt in range(_TRIES):
        try:
            with urllib.request.urlopen(url, timeout=_STALL) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            trouble = error
            if error.code < 500 and error.code not in (408, 425, 429):
                break
        except OSError as error:
            trouble = error
        time.sleep(0.25 * 2**attempt)
    raise HcpError(
        f"The description of a storage protocol cannot be downloaded from {url}",
        cause=str(trouble),
        hint="Check the network; GOPROXY names another Go module proxy, such as your company's.",
    )


def _compile(protocol: Protocol, description: bytes, mark: str, folder: Path) -> None:
    """By the path that modules have below `src`, because the compiler writes their full names into them."""
    import grpc_tools
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / PACKAGE / f"{protocol.name}.proto"
        source.parent.mkdir(parents=True)
        source.write_bytes(description)
        known = Path(grpc_tools.__file__).parent / "_proto"
        words = ["protoc", f"-I{scratch}", f"-I{known}", f"--python_out={scratch}", f"--pyi_out={scratch}", str(source)]
        if protoc.main(words) != 0:
            raise HcpError(f"The description of {protocol.name} cannot be compiled")
        for path in protocol.outputs(folder):
            text = mark + (source.parent / path.name).read_text()
            staging = path.with_name(f".{path.name}.part")
            staging.write_text(text)
            staging.replace(path)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in generate()))
