"""Starts a binder: `python -m services.binder --kubeconfig FILE --nats-url nats://…`."""

import os
import sys

from services.binder.config import BinderSettings
from services.binder.service import serve
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def main() -> int:
    """Run until stopped and return the exit status."""
    settings = load(BinderSettings, sys.argv[1:], os.environ, "binder")
    return run("binder", settings, serve)


if __name__ == "__main__":
    sys.exit(main())
