"""Starts a planner: `python -m services.gang_planner --nats-url nats://…`."""

import sys

from services.gang_planner.config import PlannerSettings
from services.gang_planner.service import main
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("gang-planner", PlannerSettings, main))
