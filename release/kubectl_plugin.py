"""`kubectl tutti` as an archive that needs no Python, and the manifest by which krew installs it.

The archive has the image's files: a Python with its libc, the dependencies, Tutti. A script starts
that Python through its own loader, so that it runs on every Linux of its architecture. krew unpacks
no symbolic links, so they are replaced by what they point to.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from release.archives import Tree, write_tar_gz
from release.debian import loader, triplet
from release.image_files import CERTIFICATES, SITE, Layers
from release.source import Source

MANIFEST: Final = "krew-tutti.yaml"
PROGRAM: Final = "kubectl-tutti"
_COMPLETION: Final = "kubectl_complete-tutti"
_PACKAGES: Final = "usr/lib/python3/dist-packages"
#: Of Debian's files: libraries, Python, certificates, licences.
_TAKEN: Final = re.compile(
    r"(usr/)?lib/[^/]+-linux-gnu/[^/]+\.so[^/]*$|usr/lib/python3\.11/.*"
    rf"|usr/bin/python3\.11$|{re.escape(CERTIFICATES)}$|usr/share/(doc|common-licenses)/.*"
)
_CUSTOMIZE: Final = "usr/lib/python3.11/sitecustomize.py"
_PYTHON: Final = """\
#!/bin/sh
# Python with the libc beside it: this machine's are not used.
here=$(dirname "$(readlink -f "$0")")
for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \\
  /etc/ssl/cert.pem "$here/{certificates}"; do
  [ -n "$SSL_CERT_FILE" ] || [ ! -r "$bundle" ] || SSL_CERT_FILE=$bundle
done
export SSL_CERT_FILE
exec "$here/{loader}" --library-path "$here/lib/{triplet}:$here/usr/lib/{triplet}" \\
  "$here/usr/bin/python3.11" "$@"
"""
_STARTER: Final = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/python" -P -c '{code}' "$@"
"""
_SITE_CUSTOMIZE: Final = '''\
"""Programs that Python starts again start it through its script, too."""

import sys

sys.executable = sys.base_prefix.removesuffix("/usr") + "/python"
'''


def pack_plugin(source: Source, layers: Layers, architecture: str, path: Path) -> None:
    """Write the archive for one architecture."""
    tree = Tree()
    for name, file in _debian_files(layers.debian):
        # Nor its compiled form, which Python would take without a look at our file.
        if "/sitecustomize." not in name:
            tree.add_file(name, file, executable=name.startswith(("usr/bin/", "lib/")))
    for layer in (layers.dependencies, layers.tutti):
        site = Tree()
        site.add_all(layer / SITE, _PACKAGES)
        tree.entries |= {n: one for n, one in site.entries.items() if one.content is not None}
    python = _PYTHON.format(
        certificates=CERTIFICATES, loader=loader(architecture), triplet=triplet(architecture)
    )
    tree.add_file("python", python.encode(), executable=True)
    tree.add_file(_CUSTOMIZE, _SITE_CUSTOMIZE.encode())
    for name, code in (
        (PROGRAM, "from tutti.cli import kubectl_plugin; kubectl_plugin()"),
        (_COMPLETION, "from tutti.completion_command import kubectl_complete as c; c()"),
    ):
        tree.add_file(name, _STARTER.format(code=code).encode(), executable=True)
    tree.add_file("LICENSE", source.folder / "LICENSE")
    write_tar_gz(path, tree, source.epoch)


def _debian_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of what is taken of Debian's packages, links replaced by their targets.

    A file that a link of its folder names is there under the link's name only.
    """
    paths = [path for path in sorted(root.rglob("*")) if not path.is_dir() or path.is_symlink()]
    libraries = {
        path.parent / path.readlink()
        for path in paths
        # On arm64 a link of another folder, which is not taken, leads to the loader.
        if path.is_symlink() and ".so" in path.name and len(path.readlink().parts) == 1
    }
    for path in paths:
        name = path.relative_to(root).as_posix()
        if not _TAKEN.match(name) or path in libraries:
            continue
        target = root / path.readlink().relative_to("/") if _absolute(path) else path.resolve()
        if target.is_file() and target.is_relative_to(root):
            yield name, target


def _absolute(path: Path) -> bool:
    return path.is_symlink() and path.readlink().is_absolute()


def krew_manifest(source: Source, archives: Mapping[str, tuple[str, str]]) -> str:
    """The manifest for krew's index, or for `kubectl krew install --manifest`.

    Args:
        source: The commit's files.
        archives: By architecture: address and SHA-256 of the archive.
    """
    platforms = [
        {
            "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
            "uri": address,
            "sha256": digest,
            "bin": PROGRAM,
        }
        for architecture, (address, digest) in sorted(archives.items())
    ]
    document = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "tutti"},
        "spec": {
            "version": f"v{source.version}",
            "homepage": "https://tutti.dev",
            "shortDescription": "Explain and control gang scheduling",
            "description": (
                "Shows why gangs wait, whether a gang would fit, queues and their shares, for\n"
                "clusters with the gang scheduler Tutti. Reads with your own rights.\n"
            ),
            "caveats": (
                "It asks the API visibility.tutti.dev of Tutti's chart. `tutti up` and `tutti\n"
                "demo`, which start servers on this machine, need the wheel instead.\n"
            ),
            "platforms": platforms,
        },
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
