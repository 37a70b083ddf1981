"""Other products on a real cluster, installed from their own manifests and charts."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import yaml

from tests.controlplane.go_builds import find_go
from tests.controlplane.operators.building import Recipe
from tests.realnodes.building import CERT_MANAGER, TRAINING_OPERATOR
from tests.realnodes.cluster import Object, RealCluster
from tests.realnodes.images import TAG

#: The issuer of certificates for tests, as the chart's values name it.
ISSUER: Final = {"name": "own", "kind": "ClusterIssuer"}
_CERTIFICATES: Final = "cert-manager.io/v1"
#: Where cluster-wide issuers keep their Secrets.
_CERT_MANAGER: Final = "cert-manager"
#: Only its controller runs. CRDs have one version, so nothing needs its webhook; Tutti registers
#: authorities itself, so nothing needs its cainjector.
_CERT_MANAGER_VALUES: Final = (
    f"image.repository=cert-manager,image.tag={TAG}",
    "crds.enabled=true,crds.keep=false,startupapicheck.enabled=false,livenessProbe.enabled=false",
    "cainjector.enabled=false,webhook.replicaCount=0",
)
_OPERATORS_IMAGE: Final = "ghcr.io/kubeflow/training-v1/training-operator"


def install_cert_manager(cluster: RealCluster) -> None:
    """Install cert-manager and `ISSUER`, whose authority it signs itself."""
    chart = str(_sources(CERT_MANAGER) / "deploy" / "charts" / "cert-manager")
    values = [f"--set={values}" for values in _CERT_MANAGER_VALUES]
    where = (f"--namespace={_CERT_MANAGER}", "--create-namespace")
    cluster.helm("install", _CERT_MANAGER, chart, *where, *values, "--wait", "--timeout=120s")
    for kind in ("mutating", "validating"):
        cluster.kubectl("delete", f"{kind}webhookconfiguration", f"{_CERT_MANAGER}-webhook")
    authority: Object = {
        "isCA": True,
        "commonName": ISSUER["name"],
        "secretName": ISSUER["name"],
        "privateKey": {"algorithm": "ECDSA", "size": 256},
        "issuerRef": {"name": "self-signed", "kind": "ClusterIssuer"},
    }
    cluster.apply(
        _of_certificates("ClusterIssuer", "self-signed", {"selfSigned": {}}),
        _of_certificates("Certificate", ISSUER["name"], authority),
        _of_certificates("ClusterIssuer", ISSUER["name"], {"ca": {"secretName": ISSUER["name"]}}),
    )


def authority_of_issuer(cluster: RealCluster) -> str:
    """The certificate of `ISSUER`'s authority, in Base64 as in configurations of webhooks."""
    path = "--output=jsonpath={.data.tls\\.crt}"
    return cluster.kubectl("get", "secret", ISSUER["name"], f"--namespace={_CERT_MANAGER}", path)


def delete_authority_of_issuer(cluster: RealCluster) -> None:
    """Have cert-manager make another authority for `ISSUER`; issued certificates stay."""
    cluster.kubectl("delete", "secret", ISSUER["name"], f"--namespace={_CERT_MANAGER}")


def start_training_operator(cluster: RealCluster) -> None:
    """Apply Kubeflow's own manifests of the training-operator, with Volcano as gang scheduler. It
    works as soon as the kubelet has seen its webhook's certificate: a minute or more."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "manifests"
        # Files of the module cache are read-only: only their contents are copied.
        manifests = _sources(TRAINING_OPERATOR) / "manifests"
        shutil.copytree(manifests, copied, copy_function=shutil.copyfile)
        ours = copied / "overlays" / "realnodes"
        ours.mkdir()
        container = "/spec/template/spec/containers/0"
        command = [f"/{TRAINING_OPERATOR.name}"]
        changes = [
            {"op": "replace", "path": f"{container}/command", "value": command},
            {"op": "add", "path": f"{container}/args", "value": ["--gang-scheduler-name=volcano"]},
        ]
        image = {"name": _OPERATORS_IMAGE, "newName": TRAINING_OPERATOR.name, "newTag": TAG}
        overlay = {
            "resources": ["../standalone"],
            "images": [image],
            "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(changes)}],
        }
        (ours / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        # Its CRDs are too large for the annotation of a client-side apply.
        cluster.kubectl("apply", "--server-side", "--kustomize", str(ours))


def _of_certificates(kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name}
    if kind == "Certificate":
        metadata["namespace"] = _CERT_MANAGER
    return {"apiVersion": _CERTIFICATES, "kind": kind, "metadata": metadata, "spec": spec}


def _sources(recipe: Recipe) -> Path:
    """The module of a product; it is in Go's cache, because its program was built from it."""
    go = find_go(os.environ)
    return go.download(recipe.module, recipe.version, Path(tempfile.gettempdir())).folder
