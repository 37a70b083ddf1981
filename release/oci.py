"""OCI image layouts: folders of blobs by digest, which registries' tools take as they are.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from release.archives import Tree, write_tar

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
REFERENCE: Final = "org.opencontainers.image.ref.name"


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """Names a blob by its digest.

    Attributes:
        digest: `sha256:` and 64 hexadecimal digits.
        size: In bytes.
        platform: What an image runs on: `architecture`, `os`, `variant`.
    """

    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The descriptor as the specification writes it."""
        found: dict[str, Any] = {
            "mediaType": self.media_type,
            "digest": self.digest,
            "size": self.size,
        }
        if self.annotations:
            found["annotations"] = dict(self.annotations)
        if self.platform:
            found["platform"] = dict(self.platform)
        return found


class Layout:
    """A layout that is being filled."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._named: list[Descriptor] = []

    def add(self, content: bytes | Path, media_type: str) -> Descriptor:
        """Add a blob; a file must stay as it is until the layout is written."""
        digest, size = digest_of(content)
        self._tree.add_file(f"blobs/sha256/{digest}", content)
        return Descriptor(media_type=media_type, digest=f"sha256:{digest}", size=size)

    def add_json(self, document: Mapping[str, Any], media_type: str) -> Descriptor:
        """Add a blob that is a JSON document."""
        return self.add(canonical(document), media_type)

    def add_manifest(
        self, config: Descriptor, layers: Sequence[Descriptor], annotations: Mapping[str, str]
    ) -> Descriptor:
        """Add the manifest of one image or artefact."""
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.as_json(),
            "layers": [one.as_json() for one in layers],
        }
        if annotations:
            document["annotations"] = dict(annotations)
        return self.add_json(document, MANIFEST)

    def add_index(
        self, manifests: Sequence[Descriptor], annotations: Mapping[str, str]
    ) -> Descriptor:
        """Add an index: the same image for several platforms."""
        document = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [one.as_json() for one in manifests],
            "annotations": dict(annotations),
        }
        return self.add_json(document, INDEX)

    def name(self, what: Descriptor, tag: str, annotations: Mapping[str, str]) -> None:
        """List a manifest or index in the layout under a tag."""
        named = {**what.annotations, **annotations, REFERENCE: tag}
        self._named.append(replace(what, annotations=named))

    def write(self, path: Path, epoch: int) -> None:
        """Write the layout as a tar archive: `skopeo copy oci-archive:PATH ...` reads it."""
        self._tree.add_file("oci-layout", canonical({"imageLayoutVersion": "1.0.0"}))
        index = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [one.as_json() for one in self._named],
        }
        self._tree.add_file("index.json", canonical(index))
        with path.open("wb") as target:
            write_tar(target, self._tree, epoch)


def canonical(document: Mapping[str, Any]) -> bytes:
    """The document as JSON with sorted keys and without spaces."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest_of(content: bytes | Path) -> tuple[str, int]:
    """SHA-256 in hexadecimal digits, and the size in bytes."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest(), len(content)
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), content.stat().st_size
