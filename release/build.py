"""All artefacts of a version, in the order in which they need one another."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release.charts import (
    Chart,
    crds_file,
    manifests_with_image,
    pack_chart,
    split_reference,
    values_with_image,
)
from release.checksums import FILE, checksums
from release.debian import ARCHITECTURES, read_lock
from release.image import Image, build_image
from release.image_files import Layers
from release.kubectl_plugin import MANIFEST, krew_manifest, pack_plugin
from release.oci import canonical, digest_of
from release.provenance import statement
from release.python_packages import build_packages
from release.sbom import bill_of_materials
from release.signing import Signer, envelope
from release.source import Source, SourceError, export

NOTES: Final = "RELEASE-NOTES.md"
PROVENANCE: Final = "provenance.json"
_CHART: Final = "deploy/chart"
_CRDS_CHART: Final = "deploy/crds-chart"
_UNSIGNED: Final = (
    "This release is not signed: COSIGN_PRIVATE_KEY was not set when it was built. Its checksums "
    "only show that files arrived as they were sent.\n"
)
_SIGNED: Final = (
    "This release is signed (`cosign.pub`, to be compared with the key that you know): "
    "`SHA256SUMS.sig` signs the checksums, `provenance.dsse.json` the provenance, and the image "
    "and both charts have signatures beside them.\n"
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to build and where.

    Attributes:
        repository: A checkout without changes.
        output: A folder that does not exist or is empty.
        work: A folder for what is made on the way.
        cache: Keeps downloads between builds.
        image: The repository that the image will be pushed to, without a tag.
        url: The address under which `vX.Y.Z/FILE` will be.
        builder: A URI of the machinery that builds.
    """

    repository: Path
    version: str
    output: Path
    work: Path
    cache: Path
    image: str
    url: str
    builder: str


def build(request: Request, signer: Signer | None) -> str:
    """Build all; return what to report.

    Raises:
        Every error of this package.
    """
    output = request.output
    if output.exists() and any(output.iterdir()):
        raise SourceError(f"{output} is not empty: artefacts of two builds must not mix")
    source = export(request.repository, request.version, request.work / "source")
    output.mkdir(parents=True, exist_ok=True)
    wheel, _ = build_packages(source, output)
    image = build_image(
        source,
        wheel,
        work=request.work / "image",
        cache=request.cache,
        output=output / f"tutti-image-{source.version}.oci.tar",
        reference=request.image,
        signer=signer,
    )
    charts = _charts(request, source, image, signer)
    _plain_manifests(request, source, image)
    lock = read_lock((source.folder / "requirements" / "image.lock").read_text("utf-8"))
    bill = bill_of_materials(source, lock, request.work)
    (output / f"tutti-{source.version}.cdx.json").write_bytes(bill)
    _plugin(request, source)
    (output / NOTES).write_text(release_notes(source, image, signed=signer is not None), "utf-8")
    _provenance(request, source, {request.image: image.digest, **charts}, signer)
    _checksums(output, signer)
    commands = install_commands(output, source.version, request.image)
    return f"{_report(output, image, signer)}{commands}"


def _charts(
    request: Request, source: Source, image: Image, signer: Signer | None
) -> dict[str, str]:
    """Pack both charts; return the digest of each by its repository."""
    values = (source.folder / _CHART / "values.yaml").read_text("utf-8")
    replaced = {"values.yaml": values_with_image(values, request.image, image.digest).encode()}
    above = request.image.rpartition("/")[0]
    prefix = f"{above}/charts/" if above else "charts/"
    made: dict[str, Chart] = {}
    for name, folder, files in (("tutti", _CHART, replaced), ("tutti-crds", _CRDS_CHART, {})):
        reference = f"{prefix}{name}"
        made[reference] = pack_chart(
            source, folder, request.output, reference=reference, signer=signer, replaced=files
        )
    return {reference: chart.digest for reference, chart in made.items()}


def _plain_manifests(request: Request, source: Source, image: Image) -> None:
    """Write the files for `kubectl apply`."""
    rendered = (source.folder / "deploy" / "tutti.yaml").read_text("utf-8")
    rendered = manifests_with_image(rendered, source.version, request.image, image.digest)
    files = {"tutti": rendered, "tutti-crds": crds_file(source)}
    for name, text in files.items():
        (request.output / f"{name}-{source.version}.yaml").write_text(text, "utf-8")


def _plugin(request: Request, source: Source) -> None:
    archives = {}
    for architecture in ARCHITECTURES:
        layers = Layers.under(request.work / "image" / architecture)
        path = request.output / f"kubectl-tutti-{source.version}-linux-{architecture}.tar.gz"
        pack_plugin(source, layers, architecture, path)
        address = f"{request.url}/v{source.version}/{path.name}"
        archives[architecture] = (address, digest_of(path)[0])
    (request.output / MANIFEST).write_text(krew_manifest(source, archives), "utf-8")


def release_notes(source: Source, image: Image, *, signed: bool) -> str:
    """The section of the changelog, and what was built of which commit."""
    sizes = ", ".join(
        f"{name} {image.packed_bytes[name] / 1e6:.0f} MB packed, "
        f"{image.unpacked_bytes[name] / 1e6:.0f} MB unpacked"
        for name in sorted(image.packed_bytes)
    )
    return (
        f"# Tutti {source.version}\n\n{source.notes}\n\n## This release\n\n"
        f"* Commit {source.commit}; image {image.digest} ({sizes}).\n"
        f"* {_SIGNED if signed else _UNSIGNED}"
    )


def _provenance(
    request: Request, source: Source, manifests: dict[str, str], signer: Signer | None
) -> None:
    parameters = {"version": request.version, "image": request.image, "url": request.url}
    files = list(request.output.iterdir())
    document = statement(source, files, manifests, parameters, request.builder)
    text = canonical(document)
    (request.output / PROVENANCE).write_bytes(text)
    if signer is not None:
        signed = json.dumps(envelope(text, signer), sort_keys=True)
        (request.output / "provenance.dsse.json").write_text(signed, "utf-8")
        (request.output / "cosign.pub").write_text(signer.public_key(), "utf-8")


def _checksums(output: Path, signer: Signer | None) -> None:
    text = checksums(output.iterdir())
    (output / FILE).write_text(text, "utf-8")
    if signer is not None:
        (output / f"{FILE}.sig").write_text(signer.sign(text.encode()), "utf-8")


def install_commands(output: Path, version: str, reference: str) -> str:
    """How to install what was built, where the image is not in its registry (yet). The kubelet
    finds an imported image by the digest that the chart names.
    """
    registry, repository = split_reference(reference)
    # Where container engines look for a name without a registry.
    library = repository if "/" in repository else f"library/{repository}"
    whole = f"{registry}/{repository}" if registry else f"docker.io/{library}"
    archive, chart = output / f"tutti-image-{version}.oci.tar", output / f"tutti-{version}.tgz"
    return (
        f"To install it, push the image to {whole}, or import it on every node:\n"
        f"  ctr --namespace=k8s.io images import --digests --base-name={whole} - < {archive}\n"
        "  (on kind: for node in $(kind get nodes); do docker exec -i $node ctr ...; done)\n"
        f"  helm install tutti {chart} --namespace kube-system --wait\n"
    )


def _report(output: Path, image: Image, signer: Signer | None) -> str:
    lines = [
        f"{output}: {len(list(output.iterdir()))} files",
        f"image {image.digest}",
        *(
            f"  {name}: {image.packed_bytes[name]} bytes packed, {size} unpacked"
            for name, size in sorted(image.unpacked_bytes.items())
        ),
        "signed" if signer is not None else _UNSIGNED.strip(),
    ]
    return "".join(f"{line}\n" for line in lines)
