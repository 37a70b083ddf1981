"""Starts an admission webhook: `python -m services.admission_webhook --kubeconfig FILE …`."""

import sys

from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.service import serve
from shared.runtime.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("admission-webhook", WebhookSettings, serve))
