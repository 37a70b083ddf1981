"""Runs a kubeconfig's `exec` plugin or `auth-provider`: `python -m
shared.kube.resolve_credentials`.

In: an `Unresolved` as JSON on standard input. Out: a `Resolved` as JSON on standard output and exit
    status 0, or a sentence on standard error and exit status 1. It is the only importer of
    kubernetes_asyncio, and only as a program: the caller imports this module for the two message
    types alone.
"""

import asyncio
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class Unresolved(msgspec.Struct, frozen=True, kw_only=True):
    """The `exec` or `auth-provider` section of a kubeconfig's user; exactly one is given."""

    exec_plugin: Mapping[str, Any] | None = None
    auth_provider: Mapping[str, Any] | None = None


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials: a token, or a client certificate with its key (PEM), or both."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    #: Seconds since the epoch; None when unknown or never.
    expires_s: float | None = None


async def resolve(question: Unresolved) -> Resolved:
    """Run the plugin or ask the provider. Raises ValueError or what kubernetes_asyncio raises."""
    if question.exec_plugin is not None:
        return await _run_plugin(question.exec_plugin)
    if question.auth_provider is not None:
        return await _ask_provider(question.auth_provider)
    raise ValueError("neither exec nor auth-provider is given")


async def _run_plugin(section: Mapping[str, Any]) -> Resolved:
    from kubernetes_asyncio.config.exec_provider import ExecProvider
    from kubernetes_asyncio.config.kube_config import ConfigNode

    status = await ExecProvider(ConfigNode("user.exec", dict(section))).run()
    certificate = status.get("clientCertificateData") or ""
    key = status.get("clientKeyData") or ""
    token = status.get("token") or ""
    if bool(certificate) != bool(key):
        raise ValueError("exec: clientCertificateData and clientKeyData must be given together")
    if not (token or certificate):
        raise ValueError("exec: the plugin gave neither a token nor a client certificate")
    expires = status.get("expirationTimestamp")
    return Resolved(
        token=token,
        certificate=certificate,
        key=key,
        expires_s=datetime.fromisoformat(expires).timestamp() if expires else None,
    )


async def _ask_provider(section: Mapping[str, Any]) -> Resolved:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config_from_dict

    configuration = Configuration()
    # Only the user matters here; the cluster is read by the caller.
    document = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1"}}],
        "users": [{"name": "x", "user": {"auth-provider": dict(section)}}],
    }
    await load_kube_config_from_dict(document, client_configuration=configuration)
    token = await configuration.get_api_key_with_prefix("BearerToken")
    if not token:
        raise ValueError(f"auth-provider: {section.get('name')!r} gave no token")
    return Resolved(token=str(token).removeprefix("Bearer "))


def main() -> int:
    """Answer one question. Returns the exit status."""
    try:
        question = msgspec.json.decode(sys.stdin.buffer.read(), type=Unresolved)
        answer = asyncio.run(resolve(question))
    except Exception as error:  # noqa: BLE001 - the parent reads one line about any error
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
