"""`make release` in two folders gives the same bytes; other programs accept what it makes."""

import base64
import gzip
import json
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from release.debian import read_lock
from release.signing import authenticated
from tests.controlplane.processes import ReservedPort
from tests.controlplane.programs import ensure_cosign, ensure_crane, ensure_krew
from tests.release.building import (
    IMAGE,
    KEY,
    ROOT,
    VERSION,
    Released,
    UnpackedLayout,
    can_mount,
    clone_again,
    locked,
    make_release,
    prepared_clone,
    run_in_image,
)

pytestmark = [pytest.mark.certify, pytest.mark.timeout(7200)]

#: For the registry's start, on a busy machine.
LISTENS_S: Final = 30.0


class Builds(NamedTuple):
    """Two builds of one commit, and the port in the image's reference."""

    first: Released
    second: Released
    port: int


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    reserved = ReservedPort()
    port = reserved.number
    reserved.release()
    one = prepared_clone(tmp_path_factory.mktemp("one") / "clone")
    first = make_release(one, "dist/first", port)
    other = clone_again(one, tmp_path_factory.mktemp("two") / "further" / "down" / "clone")
    return Builds(first, make_release(other, "elsewhere/second", port), port)


@pytest.fixture(scope="module")
def image(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> UnpackedLayout:
    archive = builds.first.file("tutti-image-*.oci.tar")
    return UnpackedLayout(archive, tmp_path_factory.mktemp("layout"))


def _verify(signature: str, content: bytes) -> None:
    KEY.public_key().verify(base64.b64decode(signature), content, ec.ECDSA(hashes.SHA256()))


def test_two_builds_have_the_same_files(builds: Builds) -> None:
    sums = [(one.folder / "SHA256SUMS").read_text("utf-8") for one in builds[:2]]
    assert sums[0] == sums[1]
    for folder in (builds.first.folder, builds.second.folder):
        check = ("sha256sum", "--check", "--quiet", "SHA256SUMS")
        subprocess.run(check, cwd=folder, check=True)
    names = [sorted(path.name for path in one.folder.iterdir()) for one in builds[:2]]
    assert names[0] == names[1] == sorted(
        [
            "RELEASE-NOTES.md",
            "SHA256SUMS",
            "SHA256SUMS.sig",
            "cosign.pub",
            f"kubectl-tutti-{VERSION}-linux-amd64.tar.gz",
            f"kubectl-tutti-{VERSION}-linux-arm64.tar.gz",
            "provenance.dsse.json",
            "provenance.json",
            f"tutti-{VERSION}.cdx.json",
            f"tutti-{VERSION}.tgz",
            f"tutti-{VERSION}.yaml",
            f"tutti-chart-{VERSION}.oci.tar",
            f"tutti-crds-{VERSION}.tgz",
            f"tutti-crds-{VERSION}.yaml",
            f"tutti-crds-chart-{VERSION}.oci.tar",
            f"tutti-image-{VERSION}.oci.tar",
            "krew-tutti.yaml",
            f"tutti_scheduler-{VERSION}-py3-none-any.whl",
            f"tutti_scheduler-{VERSION}.tar.gz",
        ]
    )  # fmt: skip
    assert (
        builds.first.said.rpartition("\n  amd64")[2]
        == builds.second.said.rpartition("\n  amd64")[2]
    )


def test_no_artefact_names_a_path_of_this_machine(builds: Builds, tmp_path: Path) -> None:
    places = {str(ROOT), str(builds.first.folder.parents[1]), "/tutti-release-"}
    for archive in builds.first.folder.glob("*.t*gz"):
        for needle in places:
            assert needle.encode() not in gzip.decompress(archive.read_bytes()), archive
    layout = UnpackedLayout(builds.first.file("tutti-image-*"), tmp_path)
    for blob in (layout.folder / "blobs" / "sha256").iterdir():
        content = blob.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        for needle in places:
            assert needle.encode() not in content, blob


def test_the_image_is_small_and_has_no_shell_and_no_root(image: UnpackedLayout) -> None:
    found = dict(image.images(image.named()[VERSION]))
    assert found.keys() == {"amd64", "arm64"}
    for manifest in found.values():
        config = image.document(manifest["config"]["digest"])
        assert config["config"]["User"] == "65532:65532"
        assert sum(one["size"] for one in manifest["layers"]) < 150_000_000
        names: set[str] = set()
        for layer in manifest["layers"]:
            assert image.path(layer["digest"]).read_bytes()[3:8] == b"\0\0\0\0\0"
            with tarfile.open(image.path(layer["digest"])) as packed:
                members = packed.getmembers()
            assert len({one.mtime for one in members}) == 1
            assert all(one.uid in {0, 65532} and not one.uname for one in members)
            assert not [one.name for one in members if one.isreg() and one.mode & 0o6002]
            names |= {one.name for one in members}
        assert {"usr/bin/python3.11", "opt/tutti/bin/tutti", "var/lib/dpkg/status.d/libc6"} <= names
        programs = {name for name in names if name.startswith(("bin/", "usr/bin/", "sbin/"))}
        assert programs == {"usr/bin/python3.11"}


def test_every_program_runs_on_a_root_that_cannot_be_written(
    image: UnpackedLayout, tmp_path: Path
) -> None:
    if not can_mount():
        pytest.skip("only root may mount the image")
    (native,) = (
        one for name, one in image.images(image.named()[VERSION]) if name == _architecture()
    )
    root = image.unpack_root(native, tmp_path / "root")
    environ = image.document(native["config"]["digest"])["config"]["Env"]
    services = sorted((ROOT / "services").glob("*/__main__.py"))
    for command in (
        ["tutti", "--version"],
        ["tutti", "provision", "--help"],
        ["tutti", "nats-reload", "--help"],
        ["tutti", "crds", "print"],
        ["python", "-m", "shared.bus.setup", "--help"],
        *(["python", "-m", f"services.{path.parent.name}", "--help"] for path in services),
    ):
        done = run_in_image(root, environ, *command)
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    assert VERSION in run_in_image(root, environ, "tutti", "--version").stdout
    libraries = "import ssl, re2, numpy, uvloop, zoneinfo, ctypes, lzma, bz2, uuid, cryptography"
    probe = f"{libraries}; print(len(ssl.create_default_context().get_ca_certs()))"
    assert int(run_in_image(root, environ, "python", "-c", probe).stdout) > 100
    write = "open('/opt/tutti/x', 'w')"
    assert "Read-only file system" in run_in_image(root, environ, "python", "-c", write).stderr
    uncompiled = "import kubernetes_asyncio.config as c; assert c.__cached__; print(c.__cached__)"
    assert run_in_image(root, environ, "python", "-c", uncompiled).returncode == 0


def _architecture() -> str:
    machine = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True)
    return machine.stdout.strip()


def test_charts_and_manifests_name_the_image_by_its_digest(
    builds: Builds, image: UnpackedLayout, helm: Path
) -> None:
    released = f"{IMAGE.format(port=builds.port)}@{image.named()[VERSION]}"
    chart = builds.first.file(f"tutti-{VERSION}.tgz")
    lint = subprocess.run([helm, "lint", "--strict", chart], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout
    command = [str(helm), "template", "tutti", str(chart), "--namespace=kube-system"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    manifests = builds.first.file(f"tutti-{VERSION}.yaml").read_text("utf-8")
    for text in (rendered, manifests):
        images = {line.partition("image: ")[2] for line in text.splitlines() if " image: " in line}
        assert released in images
        assert all(one == released or one.startswith("nats:") for one in images)
    crds = [str(helm), "template", "crds", str(builds.first.file(f"tutti-crds-{VERSION}.tgz"))]
    text = subprocess.run(crds, capture_output=True, text=True, check=True).stdout
    assert text.count("\nkind: CustomResourceDefinition") > 5


def test_the_bill_of_materials_has_every_package_of_the_locks(builds: Builds) -> None:
    bill = json.loads(builds.first.file("*.cdx.json").read_text("utf-8"))
    python = [one for one in bill["components"] if not one["purl"].startswith("pkg:deb/")]
    assert {f"{one['name']}=={one['version']}" for one in python} == locked("runtime.lock")
    assert all(one["externalReferences"][0]["hashes"] for one in python)
    debian = [one for one in bill["components"] if one["purl"].startswith("pkg:deb/")]
    lock = read_lock((ROOT / "requirements" / "image.lock").read_text("utf-8"))
    hashes_of = {(one["name"], one["hashes"][0]["content"]) for one in debian}
    assert hashes_of == {(one.name, one.sha256) for one in lock}
    assert bill["metadata"]["component"]["version"] == VERSION


def test_checksums_and_provenance_are_signed(builds: Builds) -> None:
    folder = builds.first.folder
    sums = (folder / "SHA256SUMS").read_bytes()
    _verify((folder / "SHA256SUMS.sig").read_text("utf-8"), sums)
    envelope = json.loads((folder / "provenance.dsse.json").read_text("utf-8"))
    statement = base64.b64decode(envelope["payload"])
    _verify(envelope["signatures"][0]["sig"], authenticated(statement))
    assert statement == (folder / "provenance.json").read_bytes()
    subjects = {one["name"] for one in json.loads(statement)["subject"]}
    assert subjects >= {one.name for one in folder.glob("tutti-*")}
    assert "is signed" in (folder / "RELEASE-NOTES.md").read_text("utf-8")


def test_the_plugin_runs_without_a_python_of_this_machine(builds: Builds, tmp_path: Path) -> None:
    archive = builds.first.file(f"kubectl-tutti-*-{_architecture()}.tar.gz")
    with tarfile.open(archive) as packed:
        kinds = {one.type for one in packed}
        packed.extractall(tmp_path, filter="data")
    assert kinds <= {tarfile.REGTYPE, tarfile.DIRTYPE}, "krew unpacks nothing else"
    link = tmp_path / "linked" / "kubectl-tutti"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "kubectl-tutti")

    def run(*command: str | Path) -> str:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert VERSION in run(link, "--version")
    assert "fits" in run(link, "--help")
    assert "queues" in run(tmp_path / "kubectl_complete-tutti", "qu")
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import msgspec, ssl'])"
    run(tmp_path / "python", "-c", f"{again}.check_returncode()")
    starts = "import sys; print(sys.executable)"
    assert run(tmp_path / "python", "-c", starts).strip() == str(tmp_path / "python")


def test_krew_installs_the_plugin(builds: Builds, tmp_path: Path) -> None:
    manifest = builds.first.folder / "krew-tutti.yaml"
    archive = builds.first.file(f"kubectl-tutti-*-{_architecture()}.tar.gz")
    environ = {"KREW_ROOT": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [str(ensure_krew()), "install", f"--manifest={manifest}", f"--archive={archive}"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plugin = tmp_path / "bin" / "kubectl-tutti"
    said = subprocess.run([plugin, "--version"], env=environ, capture_output=True, text=True)
    assert VERSION in said.stdout, said.stderr


def _await_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline_s = time.monotonic() + LISTENS_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except ConnectionRefusedError:
            assert process.poll() is None, f"the registry ended with {process.returncode}"
            assert time.monotonic() < deadline_s, f"nothing listens on port {port}"
            time.sleep(0.1)
        else:
            return


@contextmanager
def _registry(port: int) -> Iterator[Path]:
    """A registry at the port of the image's reference; the client that talks to it."""
    crane = ensure_crane()
    command = [str(crane), "registry", "serve", f"--address=127.0.0.1:{port}"]
    serving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_listening(serving, port)
        yield crane
    finally:
        serving.terminate()
        serving.wait(timeout=10)


def test_a_registry_takes_all_and_cosign_and_helm_accept_what_it_serves(
    builds: Builds, image: UnpackedLayout, helm: Path, tmp_path: Path
) -> None:
    reference = IMAGE.format(port=builds.port)
    charts = f"{reference.rpartition('/')[0]}/charts"
    with _registry(builds.port) as crane:
        pushed = [(image, reference)]
        for name in ("tutti", "tutti-crds"):
            archive = builds.first.file(f"{name}-chart-*.oci.tar")
            pushed.append((UnpackedLayout(archive, tmp_path / name), f"{charts}/{name}"))
        for layout, repository in pushed:
            _push(crane, layout, repository)
            digest = _call(crane, "digest", "--insecure", f"{repository}:{VERSION}")
            assert digest == layout.named()[VERSION]
        _call(crane, "validate", "--insecure", "--remote", f"{reference}:{VERSION}")
        pull = ["pull", f"oci://{charts}/tutti", f"--version={VERSION}", "--plain-http"]
        _call(helm, *pull, f"--destination={tmp_path}")
        pulled = tmp_path / f"tutti-{VERSION}.tgz"
        assert pulled.read_bytes() == builds.first.file(f"tutti-{VERSION}.tgz").read_bytes()
        key = f"--key={builds.first.folder / 'cosign.pub'}"
        verify = ("verify", key, "--insecure-ignore-tlog", "--allow-http-registry")
        for layout, repository in pushed:
            _call(ensure_cosign(), *verify, f"{repository}@{layout.named()[VERSION]}")


def _push(crane: Path, layout: UnpackedLayout, repository: str) -> None:
    """Push what a layout lists, each under its tag: crane takes layouts of one image only."""
    index = json.loads((layout.folder / "index.json").read_text("utf-8"))
    for tag, digest in layout.named().items():
        one = layout.folder.with_name(f"{layout.folder.name}-{tag[:20]}")
        one.mkdir()
        (one / "blobs").symlink_to(layout.folder / "blobs")
        (one / "oci-layout").write_bytes((layout.folder / "oci-layout").read_bytes())
        listed = [entry for entry in index["manifests"] if entry["digest"] == digest]
        (one / "index.json").write_text(json.dumps(index | {"manifests": listed}), "utf-8")
        _call(crane, "push", "--insecure", str(one), f"{repository}:{tag}")


def _call(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program.name} {arguments}: {done.stderr[-3000:]}"
    return done.stdout.strip()


def test_the_wheel_installs_into_an_environment(builds: Builds, tmp_path: Path) -> None:
    with tarfile.open(builds.first.file("tutti_scheduler-*.tar.gz")) as packed:
        names = {name.split("/")[1] for name in packed.getnames() if "/" in name}
    assert {"services", "shared", "tutti", "requirements", "PKG-INFO", "CHANGELOG.md"} <= names
    assert not names & {"tests", "deploy", "docs", "build"}
    krew: Any = yaml.safe_load((builds.first.folder / "krew-tutti.yaml").read_text("utf-8"))
    assert krew["spec"]["platforms"][0]["uri"].startswith(f"https://dl.example/v{VERSION}/")
