"""Starts controllers: `python -m services.controller --controllers=status --kubeconfig FILE`."""

import sys

from services.controller.config import ControllerSettings
from services.controller.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("controller", ControllerSettings, serve))
