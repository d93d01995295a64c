"""Where an embedded cluster keeps its things on disk."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from hcp.errors import HcpError

# In the state root: held while a new cluster takes its number.
NUMBERS_LOCK = ".numbers.lock"
# A network link, a cgroup and a host name are made from it, hence the limits.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")


def state_root() -> Path:
    """`$XDG_STATE_HOME/hcp/local` when set, `/var/lib/hcp` for root, else `~/.local/state/hcp/local`."""
    base = os.environ.get("XDG_STATE_HOME")
    if base:
        return Path(base) / "hcp" / "local"
    if os.geteuid() == 0:
        return Path("/var/lib/hcp")
    return Path.home() / ".local" / "state" / "hcp" / "local"


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise HcpError(
            f"'{name}' cannot be the name of an embedded cluster",
            hint="Use up to 30 lower-case letters, digits and dashes; begin and end with a letter or a digit.",
            exit_code=2,
        )
    return name


@dataclass(frozen=True)
class Layout:
    """All paths of one cluster. `etc` is configuration, `var` is the node's /var, `logs` what processes said."""

    root: Path

    @classmethod
    def of(cls, name: str) -> Layout:
        return cls(state_root() / check_name(name))

    def joined(self, index: int) -> Layout:
        """The folder of a node after the first, with the same things in it."""
        return Layout(self.root / "nodes" / str(index))

    @property
    def spec(self) -> Path:
        return self.root / "cluster.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def pki(self) -> Path:
        return self.etc / "pki"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def var(self) -> Path:
        """The node's /var."""
        return self.root / "var"

    @property
    def volumes(self) -> Path:
        """The file system with the volumes of the cluster, in a file."""
        return self.root / "volumes.img"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def push_socket(self) -> Path:
        """Where the registry takes pushes."""
        return self.run / "push.sock"

    @property
    def processes(self) -> Path:
        """What the supervisor shall run."""
        return self.run / "processes.json"

    @property
    def socket(self) -> Path:
        """Where the supervisor answers."""
        return self.run / "control.sock"

    @property
    def supervisor(self) -> Path:
        """Which process is the supervisor."""
        return self.run / "supervisor.json"

    @property
    def kubeconfig(self) -> Path:
        return self.etc / "admin.kubeconfig"

    def tools(self) -> list[Path]:
        """Folders with the node's own tools, as they were when it was started."""
        try:
            lines = (self.run / "tools").read_text().splitlines()
        except OSError:
            return []
        return [Path(line) for line in lines]

    def kubeconfig_of(self, user: str) -> Path:
        return self.etc / f"{user}.kubeconfig"

    def make(self) -> None:
        try:
            for path in (self.root, self.etc, self.pki, self.data, self.logs, self.run):
                path.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o700)
        except OSError as error:
            raise HcpError(
                f"The state folder {self.root} cannot be written",
                cause=error.strerror,
                hint="Run as its owner, or point XDG_STATE_HOME to a folder you own.",
            ) from error


def layouts() -> list[Layout]:
    """Every cluster that has a state folder here."""
    root = state_root()
    if not root.is_dir():
        return []
    return [Layout(path) for path in sorted(root.iterdir()) if (path / "cluster.json").is_file()]
