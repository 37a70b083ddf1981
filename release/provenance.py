"""How the artefacts were made: an in-toto statement with SLSA's predicate, version 1.

It has no instants and no name of a machine, so that two builds give the same statement.
"""

import platform
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from release.oci import digest_of
from release.source import Source

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
_BUILD: Final = "https://tutti.dev/docs/releasing.html#provenance"
_LOCKS: Final = ("build.lock", "image.lock", "release.lock", "runtime.lock")


def statement(
    source: Source,
    artefacts: Iterable[Path],
    manifests: Mapping[str, str],
    parameters: Mapping[str, str],
    builder: str,
) -> dict[str, Any]:
    """The statement about a release.

    Args:
        source: The commit's files.
        artefacts: Its files.
        manifests: By reference, the digest (`sha256:...`) of what a registry will serve.
        parameters: What was given to `make release`.
        builder: A URI of the machinery that ran it.
    """
    subjects = [_named(path.name, path) for path in sorted(artefacts)]
    for name, digest in sorted(manifests.items()):
        subjects.append({"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}})
    locks = [source.folder / "requirements" / name for name in _LOCKS]
    return {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD,
                "externalParameters": dict(parameters),
                # What the bytes of archives depend on beside the sources.
                "internalParameters": {
                    "python": platform.python_version(),
                    "zlib": zlib.ZLIB_RUNTIME_VERSION,
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": source.commit}},
                    *(_named(f"requirements/{path.name}", path) for path in locks),
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }


def _named(name: str, path: Path) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest_of(path)[0]}}
