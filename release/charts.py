"""The charts as packages: a .tgz for files, and the OCI artefact that `helm push` would make."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from release.archives import Tree, write_tar_gz
from release.image import instant
from release.oci import Layout
from release.signing import Signer, sign_manifest
from release.source import Source

_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_IGNORED: Final = ".helmignore"
_CRDS: Final = ("deploy", "crds")


class ChartError(RuntimeError):
    """A chart cannot be packed; the message names the file and what it lacks."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A packed chart.

    Attributes:
        archive: The .tgz.
        layout: The OCI layout with the same archive.
        digest: Of the artefact's manifest.
    """

    archive: Path
    layout: Path
    digest: str


def pack_chart(
    source: Source,
    folder: str,
    output: Path,
    *,
    reference: str,
    signer: Signer | None,
    replaced: Mapping[str, bytes] | None = None,
) -> Chart:
    """Pack a chart of the source.

    Args:
        source: The commit's files.
        folder: Inside the source.
        output: The folder that receives both archives.
        reference: The repository that the artefact will be pushed to, without a tag.
        signer: Signs the artefact; None: it is not signed.
        replaced: Content of files of the chart, by path, that the package has instead.
    """
    root = source.folder / folder
    metadata = yaml.safe_load((root / "Chart.yaml").read_text("utf-8"))
    name = metadata["name"]
    tree = Tree()
    for path, content in _files(root).items():
        tree.add_file(f"{name}/{path}", (replaced or {}).get(path, content))
    archive = output / f"{name}-{source.version}.tgz"
    write_tar_gz(archive, tree, source.epoch)
    layout = Layout()
    manifest = layout.add_manifest(
        layout.add_json(metadata, _CONFIG),
        [layout.add(archive, _CONTENT)],
        _annotations(source, metadata),
    )
    layout.name(manifest, source.version, {"kind": "dev.cosignproject.cosign/image"})
    if signer is not None:
        sign_manifest(layout, manifest, reference, signer)
    packed = output / f"{name}-chart-{source.version}.oci.tar"
    layout.write(packed, source.epoch)
    return Chart(archive=archive, layout=packed, digest=manifest.digest)


def _files(root: Path) -> dict[str, bytes]:
    """Content by path of what a chart consists of; links are followed."""
    found: dict[str, bytes] = {}
    for path in sorted(root.iterdir()):
        if path.is_dir():
            found |= {f"{path.name}/{name}": text for name, text in _files(path).items()}
        elif path.name != _IGNORED:
            found[path.name] = path.read_bytes()
    return found


def _annotations(source: Source, metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        "org.opencontainers.image.created": instant(source.epoch),
        "org.opencontainers.image.description": metadata["description"],
        "org.opencontainers.image.title": metadata["name"],
        "org.opencontainers.image.version": source.version,
    }


def values_with_image(text: str, reference: str, digest: str) -> str:
    """The chart's values.yaml with the released image as its default.

    Args:
        text: The file.
        reference: Of the repository, `HOST/PATH` or `PATH`.
        digest: Of the image, `sha256:...`.

    Raises:
        ChartError: The file has no such value.
    """
    registry, repository = split_reference(reference)
    for name, value in (("registry", registry), ("repository", repository), ("digest", digest)):
        pattern = re.compile(rf"(?m)(^image:\n(?:  .*\n)*?  {name}: ).*$")
        text, count = pattern.subn(lambda found, value=value: f'{found[1]}"{value}"', text)  # type: ignore[misc]  # a default of a lambda has no annotation
        if count != 1:
            raise ChartError(f"values.yaml: image.{name} is not where it is replaced")
    return text


def split_reference(reference: str) -> tuple[str, str]:
    """Registry (may be empty) and repository, divided as container engines do it."""
    first, slash, rest = reference.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return "", reference


def manifests_with_image(text: str, version: str, reference: str, digest: str) -> str:
    """deploy/tutti.yaml with the released image, for installations without Helm.

    Args:
        text: The rendered chart, with its default image.
        version: The tag that it has there.
        reference: Of the repository, without a tag.
        digest: Of the image, `sha256:...`.

    Raises:
        ChartError: It was not rendered for this version.
    """
    default = f"image: tutti:{version}\n"
    if default not in text:
        raise ChartError(f"deploy/tutti.yaml: no `{default.strip()}`: run `make chart` and commit")
    return text.replace(default, f"image: {reference}@{digest}\n")


def crds_file(source: Source) -> str:
    """All CRDs but kube-batch's in one file, for `kubectl apply --server-side -f`."""
    paths = sorted(source.folder.joinpath(*_CRDS).glob("*.yaml"))
    return "---\n".join(path.read_text("utf-8") for path in paths)
