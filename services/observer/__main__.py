"""Starts an observer: `python -m services.observer --nats-url nats://…`."""

import os
import sys

from services.observer.config import ObserverSettings
from services.observer.service import serve
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def main() -> int:
    """Run until stopped and return the exit status."""
    settings = load(ObserverSettings, sys.argv[1:], os.environ, "observer")
    return run("observer", settings, serve)


if __name__ == "__main__":
    sys.exit(main())
