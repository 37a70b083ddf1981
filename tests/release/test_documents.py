"""What a release says about itself: provenance, SBOM, checksums, krew's manifest, chart values."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.build import install_commands, release_notes
from release.charts import ChartError, crds_file, split_reference, values_with_image
from release.checksums import checksums
from release.debian import DebianPackage
from release.image import Image
from release.kubectl_plugin import krew_manifest
from release.provenance import statement
from release.sbom import add_packages
from release.source import Source

_ROOT = Path(__file__).parents[2]
_SOURCE = Source(
    folder=_ROOT, commit="c" * 40, epoch=1_700_000_000, version="1.2.3", notes="- Notes."
)
_DIGEST = f"sha256:{'d' * 64}"
_VALUES = (_ROOT / "deploy" / "chart" / "values.yaml").read_text("utf-8")


def test_checksums_are_sorted_and_have_names_without_folders(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert checksums(tmp_path.iterdir()) == f"{empty}  a\n{empty}  b\n"


def test_provenance_names_commit_locks_and_what_was_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    made = statement(
        _SOURCE, [tmp_path / "file"], {"tutti": _DIGEST}, {"version": "1.2.3"}, "https://b.example"
    )
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    assert {one["name"]: one["digest"]["sha256"] for one in made["subject"]} == {
        "file": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "tutti": "d" * 64,
    }
    definition = made["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {"version": "1.2.3"}
    source, *locks = definition["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": "c" * 40}
    assert {one["name"] for one in locks} == {
        f"requirements/{name}.lock" for name in ("build", "image", "release", "runtime")
    }
    assert made["predicate"]["runDetails"] == {"builder": {"id": "https://b.example"}}
    assert str(tmp_path) not in json.dumps(made)


def test_debian_packages_are_components_of_the_bill() -> None:
    bill: dict[str, Any] = {"components": [{"name": "aiohttp"}]}
    package = DebianPackage("amd64", "libstdc++6", "1:12.2.0-14+deb12u1", "a" * 64)
    add_packages(bill, [package])
    assert [one["name"] for one in bill["components"]] == ["aiohttp", "libstdc++6"]
    assert bill["components"][1]["purl"] == (
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12"
    )


def test_the_notes_are_the_changelogs_section_and_say_what_is_not_signed() -> None:
    image = Image(
        path=_ROOT,
        digest=_DIGEST,
        packed_bytes={"amd64": 66_000_000},
        unpacked_bytes={"amd64": 238_000_000},
    )
    notes = release_notes(_SOURCE, image, signed=False)
    assert notes.startswith("# Tutti 1.2.3\n\n- Notes.\n")
    assert f"image {_DIGEST} (amd64 66 MB packed, 238 MB unpacked)" in notes
    assert "This release is not signed" in notes
    assert "not signed" not in release_notes(_SOURCE, image, signed=True)


def test_krew_gets_an_archive_for_each_architecture() -> None:
    archives = {one: (f"https://e.example/{one}.tar.gz", "a" * 64) for one in ("arm64", "amd64")}
    manifest = yaml.safe_load(krew_manifest(_SOURCE, archives))
    assert manifest["spec"]["version"] == "v1.2.3"
    assert len(manifest["spec"]["shortDescription"]) <= 50, "a rule of krew's index"
    assert [one["selector"]["matchLabels"] for one in manifest["spec"]["platforms"]] == [
        {"os": "linux", "arch": "amd64"},
        {"os": "linux", "arch": "arm64"},
    ]
    assert manifest["spec"]["platforms"][1]["uri"] == "https://e.example/arm64.tar.gz"


@pytest.mark.parametrize(
    ("reference", "registry", "repository"),
    [
        ("tutti", "", "tutti"),
        ("acme/tutti", "", "acme/tutti"),
        ("registry.example/acme/tutti", "registry.example", "acme/tutti"),
        ("localhost:5000/tutti", "localhost:5000", "tutti"),
    ],
)
def test_the_packed_chart_names_the_released_image(
    reference: str, registry: str, repository: str
) -> None:
    assert split_reference(reference) == (registry, repository)
    before = yaml.safe_load(_VALUES)
    after = yaml.safe_load(values_with_image(_VALUES, reference, _DIGEST))
    expected = {"registry": registry, "repository": repository, "digest": _DIGEST}
    assert after["image"] == before["image"] | expected
    assert after | {"image": before["image"]} == before


@pytest.mark.parametrize(
    ("reference", "base"),
    [
        ("registry.example/acme/tutti", "registry.example/acme/tutti"),
        ("acme/tutti", "docker.io/acme/tutti"),
        ("tutti", "docker.io/library/tutti"),
    ],
)
def test_the_commands_import_the_image_under_the_name_that_the_kubelet_looks_for(
    reference: str, base: str
) -> None:
    printed = install_commands(Path("dist/1.2.3"), "1.2.3", reference)
    assert f"--base-name={base} - < dist/1.2.3/tutti-image-1.2.3.oci.tar" in printed
    assert "helm install tutti dist/1.2.3/tutti-1.2.3.tgz --namespace kube-system" in printed


def test_values_without_an_image_are_refused() -> None:
    with pytest.raises(ChartError, match=r"image\.registry is not where it is replaced"):
        values_with_image("image:\n  tag: x\n", "tutti", _DIGEST)


def test_the_file_of_crds_has_all_but_kube_batchs() -> None:
    found = re.findall(r"(?m)^(---|kind: CustomResourceDefinition)$", crds_file(_SOURCE))
    names = list((_ROOT / "deploy" / "crds").glob("*.yaml"))
    assert found == [*(["kind: CustomResourceDefinition", "---"] * len(names))][:-1]
    assert len(names) > 5
