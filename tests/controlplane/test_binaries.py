"""Where the binaries come from: the environment, or a cache keyed by what would be built."""

from pathlib import Path

import pytest

from tests.controlplane.binaries import (
    COMPONENTS,
    ensure_binaries,
    kubernetes_version,
    module_digest,
)
from tests.controlplane.go_builds import BinariesError


def test_kubebuilder_assets_are_used_as_they_are(tmp_path: Path) -> None:
    for name in COMPONENTS:
        (tmp_path / name).touch(mode=0o755)

    binaries = ensure_binaries({"KUBEBUILDER_ASSETS": str(tmp_path)})

    assert binaries.folder == tmp_path
    assert binaries.kube_apiserver == tmp_path / "kube-apiserver"


def test_assets_that_lack_a_component_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "kubectl").touch(mode=0o644)

    with pytest.raises(BinariesError) as refused:
        ensure_binaries({"KUBEBUILDER_ASSETS": str(tmp_path)})

    missing = "kube-controller-manager, kube-scheduler, kubectl"
    assert str(refused.value) == f"KUBEBUILDER_ASSETS: {tmp_path} has no executable {missing}"


def test_a_changed_version_or_source_is_another_cache_folder(tmp_path: Path) -> None:
    source = tmp_path / "cmd" / "etcd" / "main.go"
    source.parent.mkdir(parents=True)
    texts = {tmp_path / "go.mod": "module a", tmp_path / "go.sum": "", source: "package main"}
    for path, text in texts.items():
        path.write_text(text)
    digests = {module_digest(tmp_path)}
    for path, text in texts.items():
        path.write_text(f"{text}\n// changed\n")
        digests.add(module_digest(tmp_path))

    assert len(digests) == 4
    assert module_digest(tmp_path) in digests


def test_the_oracle_is_built_again_only_when_its_own_sources_change(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module a")
    (tmp_path / "go.sum").write_text("")
    digests = [module_digest(tmp_path, "oracle/*.go")]
    for name in ("cmd/etcd", "oracle"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "main.go").write_text("package main")
        digests.append(module_digest(tmp_path, "oracle/*.go"))

    assert digests[0] == digests[1] != digests[2]


def test_the_version_is_the_one_that_go_mod_requires(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("require (\n\tk8s.io/kubernetes v1.36.3\n)\n")
    assert kubernetes_version(tmp_path) == "v1.36.3"
    (tmp_path / "go.mod").write_text("module empty\n")
    with pytest.raises(BinariesError, match=r"go\.mod: no version"):
        kubernetes_version(tmp_path)
