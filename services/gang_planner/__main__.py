"""`python -m services.gang_planner`: settings, lifecycle, service."""

import os
import sys

from services.gang_planner.config import PlannerSettings
from services.gang_planner.service import main
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def start() -> int:
    """Read the settings and run to the end; returns the exit status."""
    settings = load(PlannerSettings, sys.argv[1:], os.environ, "python -m services.gang_planner")
    return run("gang-planner", settings, main)


if __name__ == "__main__":
    sys.exit(start())
