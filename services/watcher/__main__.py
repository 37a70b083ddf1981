"""Starts a watcher: `python -m services.watcher --kubeconfig FILE --nats-url nats://…`."""

import sys

from services.watcher.config import WatcherSettings
from services.watcher.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("watcher", WatcherSettings, serve))
