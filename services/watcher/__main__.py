"""Starts a watcher: `python -m services.watcher --kubeconfig FILE --nats-url nats://…`."""

import os
import sys

from services.watcher.config import WatcherSettings
from services.watcher.service import serve
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def main() -> int:
    """Run until stopped and return the exit status."""
    settings = load(WatcherSettings, sys.argv[1:], os.environ, "watcher")
    return run("watcher", settings, serve)


if __name__ == "__main__":
    sys.exit(main())
