"""The images that the nodes run beside Tutti's own, made here: no registry is asked.

Pods of gangs run Debian 12 with its Python. The image of NATS is that one with the nats-server of
the wheel; images of other products have one program each. What is made stays in the cache.
"""

import functools
import hashlib
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.support.progress import reported

_ROOT: Final = Path(__file__).parents[2]
_CHART: Final = _ROOT / "deploy" / "chart"
_REGISTRY: Final = "docker.io/library"
#: What pods of tests run: it has a shell, `sleep` and Python.
PYTHON: Final = "localhost/python:3.11-slim"
_BASE_PACKAGES: Final = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
_BUILD_S: Final = 1800.0
#: Of the images that have one program.
TAG: Final = "real"
PAUSE: Final = f"{_REGISTRY}/pause:{TAG}"


class ImageError(RuntimeError):
    """An image could not be made; the message carries the tool's own words."""


class Archive(NamedTuple):
    """A file with an image.

    Attributes:
        path: The file.
        repository: What an OCI layout, which has tags only, was built for; None: the file has whole
            names.
    """

    path: Path
    repository: str | None = None

    def import_command(self, *, address: str) -> list[str]:
        """The command that gives it to the containerd at this socket.

        With a repository the kubelet finds it under `REPOSITORY@DIGEST`, too.
        """
        command = ["ctr", f"--address={address}", "--namespace=k8s.io", "images", "import"]
        if self.repository is not None:
            command += ["--digests", f"--base-name={self.repository}"]
        return [*command, str(self.path)]


@functools.cache
def ensure_images(contained: tuple[tuple[str, Path], ...]) -> tuple[Archive, ...]:
    """Return an archive of each image, making what is missing: minutes, once.

    Args:
        contained: Names of images that have one program, `/NAME`, and where it is.

    Raises:
        ImageError: A tool failed.
    """
    folder = cache_root() / "realnodes"
    with exclusive(folder / "images.lock"):
        return _Store(folder).ensure(contained)


class _Store:
    """Buildah's images, and an archive of each as it was last exported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buildah = (
            *("buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")),
            *("--storage-driver", "overlay"),
        )

    def ensure(self, contained: Sequence[tuple[str, Path]]) -> tuple[Archive, ...]:
        """All images, made from the base upwards."""
        nats = yaml.safe_load((_CHART / "values.yaml").read_text("utf-8"))["nats"]["image"]
        if not self._has(PYTHON):
            self._make_base()
        names = [f"{_REGISTRY}/{name}:{TAG}" for name, _ in contained]
        for image, (name, program) in zip(names, contained, strict=True):
            configured = ("--entrypoint", f'["/{name}"]', "--user", "65535")
            self._make(image, "scratch", program, f"/{name}", configured)
        server = Path(sysconfig.get_path("scripts")) / "nats-server"
        self._make(f"{_REGISTRY}/{nats}", PYTHON, server, "/usr/local/bin/nats-server", ())
        names += [f"{_REGISTRY}/{nats}", PYTHON]
        return tuple(Archive(self._archive(name)) for name in names)

    def _make_base(self) -> None:
        packed = self._folder / "base.tar"
        command = ("mmdebstrap", "--variant=minbase", f"--include={_BASE_PACKAGES}", "--mode=root")
        with reported("making a base image of Debian packages", "minutes, once"):
            _run((*command, "bookworm", str(packed)))
        path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._make(PYTHON, "scratch", packed, "/", ("--cmd", "python3", "--env", path))
        packed.unlink()

    def _make(self, name: str, base: str, file: Path, target: str, config: Sequence[str]) -> None:
        """An image of its base and one file; an archive is unpacked."""
        label = hashlib.sha256(file.read_bytes()).hexdigest()
        if self._has(name) and self._label(name) == label:
            return
        container = self._call("from", "--pull-never", base)
        self._call("add", "--quiet", container, str(file), target)
        self._call("config", "--label", f"content={label}", *config, container)
        self._call("commit", "--quiet", "--rm", container, name)

    def _archive(self, name: str) -> Path:
        """Export an image unless the archive at hand is of the same one."""
        path = self._folder / f"{name.rpartition('/')[2].replace(':', '-')}.tar"
        known = path.with_suffix(".id")
        digest = self._call("inspect", "--type=image", "--format={{.FromImageID}}", name)
        if not path.exists() or not known.exists() or known.read_text() != digest:
            path.unlink(missing_ok=True)
            self._call("push", "--quiet", name, f"docker-archive:{path}:{name}")
            known.write_text(digest)
        return path

    def _has(self, name: str) -> bool:
        listed = self._call("images", "--format={{.Name}}:{{.Tag}}")
        return name in listed.split()

    def _label(self, name: str) -> str:
        template = '--format={{index .OCIv1.Config.Labels "content"}}'
        return self._call("inspect", "--type=image", template, name)

    def _call(self, *arguments: str) -> str:
        return _run((*self._buildah, *arguments))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        ("nice", "-n", "10", *command),
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_S,
    )
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-20:])
        raise ImageError(f"{' '.join(command)} exited with {done.returncode}:\n{tail}")
    return done.stdout.strip()
