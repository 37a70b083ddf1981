"""Starts an admission webhook: `python -m services.admission_webhook --kubeconfig FILE …`."""

import os
import sys

from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.service import serve
from shared.runtime.lifecycle import run
from shared.runtime.settings import load


def main() -> int:
    """Run until stopped and return the exit status."""
    settings = load(WebhookSettings, sys.argv[1:], os.environ, "admission-webhook")
    return run("admission-webhook", settings, serve)


if __name__ == "__main__":
    sys.exit(main())
