"""`python -m hcp`: the same as the command."""

import sys

from hcp.cli.main import hcp

sys.exit(hcp())
