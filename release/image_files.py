"""The files of the image for one architecture, a folder for each layer.

`debian` has the packages of requirements/image.lock without manuals and translations,
`dependencies` the wheels of requirements/runtime.lock, `tutti` our own wheel. Nothing of the image
runs here but its Python, which compiles all modules: for another architecture, too, since both have
the same version. So no kubelet compiles them at each start on a read-only file system.
"""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from release.archives import Tree
from release.debian import DebianPackage, loader, native, triplet
from release.python_packages import run_tool

HOME: Final = "opt/tutti"
SITE: Final = f"{HOME}/lib/python3.11/site-packages"
USER: Final = 65532
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
#: Volumes are mounted over these: an empty one gets the owner of what it covers.
_VOLUMES: Final = ("etc/tutti/nats", "var/lib/tutti/nats")
_LEFT_OUT: Final = re.compile(
    r"usr/share/(man|doc-base|lintian|info|locale|bug|binfmts|menu|applications|pixmaps)(/|$)"
    r"|usr/share/doc/(?!.*/copyright$)[^/]+/[^/]"
    r"|usr/lib/[^/]+/gconv(/|$)"
    r"|etc/(update-motd\.d|profile\.d|skel|init\.d|cron\.daily)(/|$)"
    r"|usr/(sbin|share/ca-certificates)/update|(var/)?(mail|local|lib/dpkg/info)(/|$)"
)
_USERS: Final = (
    "root:x:0:0:root:/root:/sbin/nologin\n"
    f"nonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
)
_GROUPS: Final = f"root:x:0:\nnonroot:x:{USER}:\nnogroup:x:65534:\n"
_PLATFORM: Final = {"amd64": "x86_64", "arm64": "aarch64"}
#: Manylinux versions that Debian 12's libc (2.36) and libstdc++ satisfy.
_GLIBC: Final = (*(f"manylinux_2_{minor}" for minor in range(36, 16, -1)), "manylinux2014")
#: Dependencies without a wheel: pure Python, built here.
_SOURCES: Final = ("nkeys",)


class Layers(NamedTuple):
    """Folders with the files of each layer."""

    debian: Path
    dependencies: Path
    tutti: Path

    @classmethod
    def under(cls, folder: Path) -> "Layers":
        """The layers of one architecture."""
        return cls(folder / "debian", folder / "dependencies", folder / "tutti")


def unpack_debian(packages: Iterable[tuple[DebianPackage, Path]], root: Path) -> None:
    """Unpack the packages, with what their installation scripts would have made of the rest."""
    for package, path in packages:
        packed = run_bytes("dpkg-deb", "--fsys-tarfile", str(path))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = [one for one in archive if not _LEFT_OUT.match(one.name.removeprefix("./"))]
            archive.extractall(root, members, filter="tar")
        # Where scanners of distroless images look for packages.
        status = root / "var" / "lib" / "dpkg" / "status.d" / package.name
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(run_tool("dpkg-deb", "--field", str(path), cwd=root), "utf-8")
    etc = root / "etc"
    (etc / "passwd").write_text(_USERS, "utf-8")
    (etc / "group").write_text(_GROUPS, "utf-8")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n", "utf-8")
    given = sorted((root / "usr" / "share" / "ca-certificates").rglob("*.crt"))
    bundle = root / CERTIFICATES
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in given))
    shutil.rmtree(root / "usr" / "share" / "ca-certificates")


def download_wheels(lock: Path, architecture: str, folder: Path) -> list[Path]:
    """Every wheel of a lock for an architecture, by hash; sorted."""
    folder.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    platforms = [f"--platform={glibc}_{_PLATFORM[architecture]}" for glibc in _GLIBC]
    abis = [f"--abi={abi}" for abi in ("cp311", "abi3", "none")]
    python = ("--python-version=3.11", "--implementation=cp", *abis, *platforms)
    only = ("--only-binary=:all:", *(f"--no-binary={name}" for name in _SOURCES))
    how = ("--no-deps", "--no-build-isolation", "--require-hashes", *only, *python)
    run_tool(*pip, "download", *how, f"--requirement={lock}", f"--dest={folder}", cwd=folder)
    for sdist in folder.glob("*.tar.gz"):
        options = ("--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={folder}")
        # setuptools writes the time into the archive: fixed, as in our own wheel.
        run_tool(*pip, "wheel", *options, str(sdist), cwd=folder, SOURCE_DATE_EPOCH="315532800")
    return sorted(folder.glob("*.whl"))


def install_wheels(wheels: Iterable[Path], root: Path) -> None:
    """Install into the image's environment, whose interpreter need not run here."""
    # Only the release's own environment has it.
    from installer import install  # pyright: ignore[reportMissingImports] - see above
    from installer.destinations import SchemeDictionaryDestination  # pyright: ignore[reportMissingImports] - see above
    from installer.sources import WheelFile  # pyright: ignore[reportMissingImports] - see above

    scheme = {
        "purelib": f"/{SITE}",
        "platlib": f"/{SITE}",
        "headers": f"/{HOME}/include",
        "scripts": f"/{HOME}/bin",
        "data": f"/{HOME}",
    }
    for wheel in wheels:
        destination = SchemeDictionaryDestination(
            scheme,
            interpreter=f"/{HOME}/bin/python",
            script_kind="posix",
            destdir=str(root),
            bytecode_optimization_levels=(),
        )
        with WheelFile.open(wheel) as source:
            install(source, destination, additional_metadata={"INSTALLER": b"tutti-release\n"})


def drop_unused(root: Path) -> None:
    """Remove from the dependencies what no service runs: programs, tests, headers, stubs."""
    for name in ("bin", "include", "share"):
        shutil.rmtree(root / HOME / name, ignore_errors=True)
    site = root / SITE
    for path in sorted(site.rglob("tests")):
        if path.is_dir():
            shutil.rmtree(path)
    for path in [*site.rglob("*.pyi"), *site.rglob("*.a"), *site.rglob("*.pyx")]:
        path.unlink()


def add_environment(root: Path) -> None:
    """Make the folder a virtual environment of the image's Python."""
    binaries = root / HOME / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        (binaries / name).symlink_to("/usr/bin/python3.11")
    settings = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n"
    (root / HOME / "pyvenv.cfg").write_text(settings, "utf-8")


def compile_modules(debian: Path, root: Path, folder: str) -> None:
    """Compile all modules of a folder inside the root with the image's own Python.

    Args:
        debian: The unpacked packages of this machine's architecture.
        root: What will be the image's root; its path is in no compiled module.
        folder: Inside it.

    Raises:
        BuildError: A module cannot be compiled.
    """
    libraries = [f"{debian}/{above}lib/{triplet(native())}" for above in ("", "usr/")]
    python = (
        str(debian / loader(native())),
        "--library-path",
        ":".join(libraries),
        str(debian / "usr" / "bin" / "python3.11"),
    )
    options = ("-q", "-f", "--invalidation-mode=unchecked-hash", f"-s{root}", "-p/")
    run_tool(
        *python,
        *("-m", "compileall", *options, str(root / folder)),
        cwd=root,
        PYTHONHOME=str(debian / "usr"),
        # The order of sets that become constants.
        PYTHONHASHSEED="0",
        PYTHONDONTWRITEBYTECODE="1",
    )


def tree_of(folder: Path) -> Tree:
    """The files of a layer with the owners and modes that they need."""
    tree = Tree()
    tree.add_all(folder)
    if (folder / "etc" / "passwd").exists():
        for name in ("tmp", "var/tmp"):
            tree.add_folder(name, mode=0o1777)
    if (folder / HOME / "pyvenv.cfg").exists():
        for name in _VOLUMES:
            tree.add_folder(name, owner=USER)
    return tree


def run_bytes(*command: str) -> bytes:
    """What a command prints, as bytes."""
    return subprocess.run(command, capture_output=True, check=True).stdout
