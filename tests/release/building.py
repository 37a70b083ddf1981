"""Releases of the checkout's commits, built by `make release` in clones of their own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from release.oci import REFERENCE

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "98.7.6"
IMAGE: Final = "127.0.0.1:{port}/acme/tutti"
IMAGE_LOCK: Final = "requirements/image.lock"
KEY: Final = ec.derive_private_key(98, ec.SECP256R1())
_BUILD_S: Final = 3000.0
_COMMITTER: Final = ("-c", "user.name=a", "-c", "user.email=a@example.org")


@dataclass(frozen=True)
class Released:
    """The artefacts of one build.

    Attributes:
        folder: Where they are.
        said: What `make release` printed.
    """

    folder: Path
    said: str

    def file(self, pattern: str) -> Path:
        """The one file whose name has this form."""
        (found,) = self.folder.glob(pattern)
        return found


def prepared_clone(folder: Path, version: str = VERSION, commit: str = "HEAD") -> Path:
    """Clone a commit of the checkout and make a commit that is this version, with a fixed date.

    It has the checkout's lock of Debian packages: apt serves the newest ones only, so a former
    commit's lock may name packages that are gone.
    """
    full = _run("git", "rev-parse", "--verify", f"{commit}^{{commit}}", cwd=ROOT).strip()
    _run("git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder), cwd=ROOT)
    _run("git", "checkout", "--quiet", "--detach", full, cwd=folder)
    (folder / IMAGE_LOCK).write_text(_run("git", "show", f"HEAD:{IMAGE_LOCK}", cwd=ROOT), "utf-8")
    python = (sys.executable, "-m")
    _run(*python, "release", "version", version, "--date=2026-02-03", cwd=folder)
    _run(*python, "tests.deploy.rendered", cwd=folder)
    made = ("commit", "--all", "--quiet", "--message=Release")
    _run("git", *_COMMITTER, *made, cwd=folder)
    _share_environment(ROOT, folder)
    return folder


def clone_again(source: Path, folder: Path) -> Path:
    """Clone a prepared clone."""
    _run("git", "clone", "--quiet", str(source), str(folder), cwd=source)
    _share_environment(source, folder)
    return folder


def _share_environment(source: Path, clone: Path) -> None:
    """Let a clone use the tools that its source has installed, if its lock did not change since."""
    stamp = source / "build" / "release-env" / ".stamp"
    lock = Path("requirements") / "release.lock"
    if stamp.exists() and stamp.stat().st_mtime >= (source / lock).stat().st_mtime:
        (clone / "build").mkdir(exist_ok=True)
        (clone / "build" / "release-env").symlink_to(stamp.parent)
        # A clone's files are younger than what they are copies of.
        instant = stamp.stat().st_mtime - 1
        os.utime(clone / lock, (instant, instant))


def make_release(
    clone: Path, output: Path, image: str, version: str = VERSION, *, signed: bool = True
) -> Released:
    """Run `make release`.

    Args:
        clone: Prepared, of this version.
        output: A folder that does not exist, absolute or in the clone.
        image: The repository in the image's reference.
        version: X.Y.Z.
        signed: Whether with `KEY`.
    """
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    made = _run(
        *("make", "release", f"VERSION={version}", f"OUT={output}", f"PYTHON={sys.executable}"),
        *(f"IMAGE={image}", "URL=https://dl.example"),
        cwd=clone,
        COSIGN_PRIVATE_KEY=key.decode() if signed else "",
    )
    return Released(clone / output, made)


def _run(*command: str, cwd: Path, **variables: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(cwd), **variables}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_S,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


class UnpackedLayout:
    """A layout from its archive."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.folder = folder
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")

    def named(self) -> dict[str, str]:
        """Digest by tag."""
        index = json.loads((self.folder / "index.json").read_text("utf-8"))
        return {one["annotations"][REFERENCE]: one["digest"] for one in index["manifests"]}

    def path(self, digest: str) -> Path:
        """The file of a blob."""
        return self.folder / "blobs" / digest.replace(":", "/")

    def document(self, digest: str) -> dict[str, Any]:
        """A blob that is JSON."""
        found: dict[str, Any] = json.loads(self.path(digest).read_bytes())
        return found

    def images(self, digest: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Architecture and manifest of each image of an index."""
        for one in self.document(digest)["manifests"]:
            yield one["platform"]["architecture"], self.document(one["digest"])

    def unpack_root(self, manifest: dict[str, Any], root: Path) -> Path:
        """Unpack the layers of an image over one another."""
        for layer in manifest["layers"]:
            with tarfile.open(self.path(layer["digest"])) as packed:
                packed.extractall(root, filter="tar")
        return root


def run_in_image(root: Path, environ: list[str], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program as the image's user on the image, which it cannot write. Needs root."""
    script = (
        'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && '
        'exec chroot --userspec=65532:65532 . /opt/tutti/bin/python -c "$START" "$@"'
    )
    start = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
    variables = dict(one.split("=", 1) for one in environ)
    unshare = ("unshare", "--mount", "--propagation=private", "sh", "-c", script, str(root))
    return subprocess.run(
        (*unshare, *command),
        env={**variables, "PATH": f"{variables['PATH']}:{os.environ['PATH']}", "START": start},
        capture_output=True,
        text=True,
        check=False,
    )


def locked(name: str) -> set[str]:
    """`package==version` of a lock in requirements/."""
    text = (ROOT / "requirements" / name).read_text("utf-8")
    return set(re.findall(r"^[\w.-]+==[\w.]+", text, re.MULTILINE))


def can_mount() -> bool:
    """Whether `run_in_image` may run here."""
    return os.geteuid() == 0 and shutil.which("unshare") is not None
