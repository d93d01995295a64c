"""Leaves the commit in the wheel; everything else about the build is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "src"))

from hcp.build_info import COMMIT_FILE, UNKNOWN, commit


class BuildWithCommit(build_py):
    def run(self) -> None:
        super().run()
        found = commit()
        if not self.editable_mode and found != UNKNOWN:
            (Path(self.build_lib) / "hcp" / COMMIT_FILE).write_text(f"{found}\n")


setup(cmdclass={"build_py": BuildWithCommit})
