"""The image of all services for amd64 and arm64, as an OCI layout.

The same packages, paths and user as the Dockerfile's, by the same lock, without a shell: the base
is what requirements/image.lock has. No engine for containers is needed, nor root.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release import image_files
from release.archives import Sink, Tree, compressed, write_tar
from release.debian import ARCHITECTURES, fetch, native, read_lock
from release.image_files import CERTIFICATES, HOME, SITE, USER, Layers
from release.oci import CONFIG, LAYER, Descriptor, Layout, digest_of
from release.signing import Signer, sign_manifest
from release.source import Source

#: No image is larger, packed: what a registry keeps and a node pulls, for each architecture.
PACKED_BYTES_MAX: Final = 150_000_000
_PROGRAM: Final = ["tutti", "--help"]


class ImageTooLargeError(RuntimeError):
    """The layers of the image exceed PACKED_BYTES_MAX."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A built image.

    Attributes:
        digest: Of its index, which names it on all platforms.
        packed_bytes: What a node pulls, by architecture.
        unpacked_bytes: What it keeps, by architecture.
    """

    path: Path
    digest: str
    packed_bytes: Mapping[str, int]
    unpacked_bytes: Mapping[str, int]


class _Counted:
    """Passes on what is written, and keeps its digest and size."""

    def __init__(self, target: Sink) -> None:
        self._target = target
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, content: bytes, /) -> int:
        self.digest.update(content)
        self.size += len(content)
        return self._target.write(content)

    def tell(self) -> int:
        return self.size


def build_image(
    source: Source,
    wheel: Path,
    *,
    work: Path,
    cache: Path,
    output: Path,
    reference: str,
    signer: Signer | None,
) -> Image:
    """Build the image of a commit.

    Args:
        source: The commit's files.
        wheel: Our own.
        work: A folder for what is made on the way.
        cache: Keeps downloaded Debian packages between builds.
        output: The archive of the layout; its signature is a layout of its own beside it.
        reference: The repository that it will be pushed to, without a tag.
        signer: Signs it; None: it is not signed.

    Raises:
        BuildError: A package cannot be had, or a tool failed.
        ImageTooLargeError: It exceeds the limit.
    """
    layout = Layout()
    lock = (source.folder / "requirements" / "image.lock").read_text("utf-8")
    packages = fetch(read_lock(lock), cache)
    folders = {one: Layers.under(work / one) for one in ARCHITECTURES}
    for architecture, layers in folders.items():
        own = [(one, path) for one, path in packages.items() if one.architecture == architecture]
        image_files.unpack_debian(own, layers.debian)
    manifests, packed, unpacked = [], {}, {}
    for architecture, layers in folders.items():
        _fill(source, wheel, architecture, layers, folders[native()].debian)
        manifest, packed[architecture], unpacked[architecture] = _add_image(
            layout, source, architecture, layers
        )
        manifests.append(manifest)
    _check_sizes(packed)
    index = layout.add_index(manifests, _annotations(source))
    names = {"io.containerd.image.name": f"{_full(reference)}:{source.version}"}
    layout.name(index, source.version, {**names, "kind": "dev.cosignproject.cosign/imageIndex"})
    layout.write(output, source.epoch)
    if signer is not None:
        # Apart from the image: containerd imports an archive only if everything in it can run.
        signature = Layout()
        sign_manifest(signature, index, reference, signer)
        path = output.with_name(f"tutti-image-signature-{source.version}.oci.tar")
        signature.write(path, source.epoch)
    return Image(path=output, digest=index.digest, packed_bytes=packed, unpacked_bytes=unpacked)


def _full(reference: str) -> str:
    """The reference as containerd writes it: with a registry, Docker's if it names none."""
    first, slash, _ = reference.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return reference
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"


def _check_sizes(packed: Mapping[str, int]) -> None:
    for architecture, size in packed.items():
        if size > PACKED_BYTES_MAX:
            raise ImageTooLargeError(
                f"the layers for {architecture} have {size} bytes (limit {PACKED_BYTES_MAX}, "
                "release/image.py)"
            )


def _fill(
    source: Source, wheel: Path, architecture: str, layers: Layers, interpreter: Path
) -> None:
    """Make the files of all layers; those of Debian are there."""
    lock = source.folder / "requirements" / "runtime.lock"
    wheels = layers.dependencies.parent / "wheels"
    image_files.install_wheels(
        image_files.download_wheels(lock, architecture, wheels), layers.dependencies
    )
    image_files.drop_unused(layers.dependencies)
    image_files.install_wheels([wheel], layers.tutti)
    image_files.add_environment(layers.tutti)
    for root, folder in (
        (layers.debian, "usr/lib/python3.11"),
        (layers.dependencies, SITE),
        (layers.tutti, SITE),
    ):
        image_files.compile_modules(interpreter, root, folder)


def _add_image(
    layout: Layout, source: Source, architecture: str, layers: Layers
) -> tuple[Descriptor, int, int]:
    """Add the image of one architecture; return its manifest and its packed and unpacked size."""
    blobs, identifiers, history, unpacked = [], [], [], 0
    for name, folder in zip(layers._fields, layers, strict=True):
        tree = image_files.tree_of(folder)
        blob, identifier = _add_layer(layout, tree, folder.with_suffix(".tar.gz"), source.epoch)
        blobs.append(blob)
        identifiers.append(identifier)
        history.append({"created": instant(source.epoch), "created_by": f"make release: {name}"})
        unpacked += _bytes_of(tree)
    config = layout.add_json(
        {
            "architecture": architecture,
            "os": "linux",
            "created": instant(source.epoch),
            "config": _config(source),
            "rootfs": {"type": "layers", "diff_ids": identifiers},
            "history": history,
        },
        CONFIG,
    )
    manifest = layout.add_manifest(config, blobs, _annotations(source))
    platform = {"architecture": architecture, "os": "linux"}
    described = Descriptor(
        media_type=manifest.media_type,
        digest=manifest.digest,
        size=manifest.size,
        platform=platform,
    )
    return described, sum(one.size for one in blobs), unpacked


def _add_layer(layout: Layout, tree: Tree, path: Path, epoch: int) -> tuple[Descriptor, str]:
    """Add a layer; return its blob and the digest of its uncompressed archive."""
    with path.open("wb") as file, compressed(file) as packed:
        counted = _Counted(packed)
        write_tar(counted, tree, epoch)
    return layout.add(path, LAYER), f"sha256:{counted.digest.hexdigest()}"


def _bytes_of(tree: Tree) -> int:
    contents = (one.content for one in tree.entries.values())
    return sum(digest_of(one)[1] for one in contents if one is not None)


def _config(source: Source) -> dict[str, Any]:
    path = f"/{HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "User": f"{USER}:{USER}",
        "WorkingDir": "/",
        "Cmd": _PROGRAM,
        "Env": [
            f"PATH={path}",
            "PYTHONUNBUFFERED=1",
            "PYTHONDONTWRITEBYTECODE=1",
            f"SSL_CERT_FILE=/{CERTIFICATES}",
        ],
        "Labels": dict(_annotations(source)),
    }


def _annotations(source: Source) -> dict[str, str]:
    return {
        "org.opencontainers.image.created": instant(source.epoch),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.title": "tutti",
        "org.opencontainers.image.version": source.version,
    }


def instant(epoch: int) -> str:
    """The instant in RFC 3339."""
    return dt.datetime.fromtimestamp(epoch, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
