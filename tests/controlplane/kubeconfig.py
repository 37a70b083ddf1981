"""Writes kubeconfig files: for a client certificate or for a bearer token."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.certificates import KeyPair

CONTEXT = "tutti-test"


def write_kubeconfig(
    path: Path,
    *,
    server: str,
    ca_pem: bytes,
    credentials: KeyPair | str,
    namespace: str = "default",
) -> Path:
    """Write a kubeconfig whose only context uses these credentials (a string is a token)."""
    user: dict[str, str]
    match credentials:
        case str():
            user = {"token": credentials}
        case KeyPair():
            user = {
                "client-certificate-data": _base64(credentials.certificate_pem),
                "client-key-data": _base64(credentials.key_pem),
            }
    cluster = {"server": server, "certificate-authority-data": _base64(ca_pem)}
    context = {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": context}],
    }
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    path.chmod(0o600)
    return path


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
