"""Starts an observer: `python -m services.observer --nats-url nats://…`."""

import sys

from services.observer.config import ObserverSettings
from services.observer.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("observer", ObserverSettings, serve))
