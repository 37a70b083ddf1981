"""Programs that tests run beside the control plane, built from their Go modules and cached there.

Each is a folder of its own, by its version: a new version here builds a new one.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import kubernetes_version
from tests.controlplane.go_builds import GoTool, ensure_built

HELM: Final = "helm.sh/helm/v3"
HELM_VERSION: Final = "v3.22.0"
#: Where Helm looks for the Kubernetes that it was made with; 1.20 without.
_HELM_KUBERNETES: Final = (f"{HELM}/pkg/chartutil", f"{HELM}/pkg/lint/rules")

COMPOSE: Final = "github.com/compose-spec/compose-go/v2"
COMPOSE_VERSION: Final = "v2.16.2"

ACTIONLINT: Final = "github.com/rhysd/actionlint/cmd/actionlint"
ACTIONLINT_VERSION: Final = "v1.7.12"
CRANE: Final = "github.com/google/go-containerregistry/cmd/crane"
CRANE_VERSION: Final = "v0.22.1"
COSIGN: Final = "github.com/sigstore/cosign/v2/cmd/cosign"
COSIGN_VERSION: Final = "v2.6.5"
KREW: Final = "sigs.k8s.io/krew/cmd/krew"
KREW_VERSION: Final = "v0.4.3"


def ensure_helm(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the Helm client, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    major, minor = kubernetes_version().removeprefix("v").split(".")[:2]
    stamps = {f"{HELM}/internal/version.version": HELM_VERSION}
    for package in _HELM_KUBERNETES:
        stamps |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
    return _ensure(f"{HELM}/cmd/helm", HELM_VERSION, "helm", environ, stamps)


def ensure_compose_loader(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the program of the Compose specification's own library that loads a file by its schema
    and prints what it means; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(f"{COMPOSE}/cmd", COMPOSE_VERSION, "compose-spec", environ, {})


def ensure_actionlint(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the linter of GitHub workflows; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(ACTIONLINT, ACTIONLINT_VERSION, "actionlint", environ, {})


def ensure_crane(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the client of container registries, which is also a registry; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(CRANE, CRANE_VERSION, "crane", environ, {})


def ensure_cosign(environ: Mapping[str, str] = os.environ) -> Path:
    """Return sigstore's program that verifies signatures; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(COSIGN, COSIGN_VERSION, "cosign", environ, {})


def ensure_krew(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the manager of kubectl's plugins; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(KREW, KREW_VERSION, "krew", environ, {})


def _ensure(
    package: str, version: str, name: str, environ: Mapping[str, str], stamps: Mapping[str, str]
) -> Path:
    def build(go: GoTool, made: Path) -> None:
        go.install(package, version, made, stamps)

    folder = ensure_built(f"{name}-{version}", f"{package}@{version}", build, environ)
    return folder / package.rpartition("/")[2]
