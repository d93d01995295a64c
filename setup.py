"""Makes the code of storage protocols and leaves the commit in the wheel; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "src"))

from hcp.build_info import COMMIT_FILE, UNKNOWN, commit
from hcp.csi.wire.generate import generate
from hcp.errors import HcpError


class Build(build_py):
    def run(self) -> None:
        try:
            generate()
        except HcpError as error:
            raise SystemExit(f"{error}. {error.hint or ''}") from error
        super().run()
        found = commit()
        if not self.editable_mode and found != UNKNOWN:
            (Path(self.build_lib) / "hcp" / COMMIT_FILE).write_text(f"{found}\n")


setup(cmdclass={"build_py": Build})
