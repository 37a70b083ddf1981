"""Starts a binder: `python -m services.binder --kubeconfig FILE --nats-url nats://…`."""

import sys

from services.binder.config import BinderSettings
from services.binder.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("binder", BinderSettings, serve))
