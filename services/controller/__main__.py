"""Starts controllers: `python -m services.controller --controllers=status --kubeconfig FILE`."""

import os
import sys

from services.controller.config import ControllerSettings
from services.controller.service import serve
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def main() -> int:
    """Run until stopped and return the exit status."""
    settings = load(ControllerSettings, sys.argv[1:], os.environ, "controller")
    return run("controller", settings, serve)


if __name__ == "__main__":
    sys.exit(main())
