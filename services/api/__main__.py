"""Starts an API service: `python -m services.api --nats-url nats://…`."""

import sys

from services.api.config import ApiSettings
from services.api.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("api", ApiSettings, serve))
