"""`make release` in two folders gives the same bytes; other programs accept what it makes."""

import base64
import gzip
import json
import re
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from release.debian import read_lock
from release.signing import authenticated
from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_nodes, create_pods, pod_manifest
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
from tests.release.emulation import Emulated, cannot_emulate
from tests.support.rbac import as_account
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.certify, pytest.mark.timeout(7200)]

#: For services under emulation, on a busy machine.
EMULATED_S: Final = 600.0
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
    image = IMAGE.format(port=port)
    first = make_release(one, Path("dist/first"), image)
    other = clone_again(one, tmp_path_factory.mktemp("two") / "further" / "down" / "clone")
    return Builds(first, make_release(other, Path("elsewhere/second"), image), port)


@pytest.fixture(scope="module")
def image(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> UnpackedLayout:
    archive = builds.first.file(f"tutti-image-{VERSION}.oci.tar")
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
            f"tutti-image-signature-{VERSION}.oci.tar",
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
    layout = UnpackedLayout(builds.first.file(f"tutti-image-{VERSION}.*"), tmp_path)
    for blob in (layout.folder / "blobs" / "sha256").iterdir():
        content = blob.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        for needle in places:
            assert needle.encode() not in content, blob


def test_the_image_is_small_and_has_no_shell_and_no_root(image: UnpackedLayout) -> None:
    # Nodes take an archive only if everything in it can run: no signature.
    assert image.named().keys() == {VERSION}
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
    for command in _programs():
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


def _programs() -> Iterator[list[str]]:
    """A short run of each program of the image."""
    yield ["tutti", "--version"]
    yield ["tutti", "provision", "--help"]
    yield ["tutti", "nats-reload", "--help"]
    yield ["tutti", "crds", "print"]
    yield ["python", "-m", "shared.bus.setup", "--help"]
    for path in sorted((ROOT / "services").glob("*/__main__.py")):
        yield ["python", "-m", f"services.{path.parent.name}", "--help"]


@pytest.fixture(scope="module")
def arm64(image: UnpackedLayout, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """The arm64 image, if this machine can run it."""
    if why := cannot_emulate():
        pytest.skip(why)
    manifest = dict(image.images(image.named()[VERSION]))["arm64"]
    root = image.unpack_root(manifest, tmp_path_factory.mktemp("arm64") / "root")
    return Emulated(root, image.document(manifest["config"]["digest"])["config"]["Env"])


def test_every_program_of_the_arm64_image_runs(arm64: Emulated) -> None:
    for command in _programs():
        done = arm64.run(*command)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}"
    libraries = "re2, uvloop, msgspec, zoneinfo, ctypes, lzma, bz2, uuid, cryptography.x509"
    probe = (
        f"import platform, ssl, numpy, {libraries}; "
        "print(platform.machine(), len(ssl.create_default_context().get_ca_certs()), "
        "int((numpy.arange(10**6).reshape(1000, 1000) % 7 @ numpy.ones((1000, 1))).sum()), "
        "msgspec.json.encode(msgspec.json.decode(b'[1.5, null]')).decode())"
    )
    done = arm64.run("python", "-c", probe)
    machine, authorities, total, text = done.stdout.split()
    assert (machine, text) == ("aarch64", "[1.5,null]")
    assert int(authorities) > 100
    assert int(total) == sum(n % 7 for n in range(10**6))
    write = "open('/opt/tutti/x', 'w')"
    assert "Read-only file system" in arm64.run("python", "-c", write).stdout


@pytest.mark.usefixtures("empty_cluster")
async def test_services_of_the_arm64_image_bind_a_gang(
    arm64: Emulated,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    nats_server: NatsServer,
    tmp_path: Path,
) -> None:
    bus = await Bus.connect(nats_server.url, name="test")
    try:
        await ensure_streams(bus)
    finally:
        await bus.close()
    await create_nodes(api, 2)
    with ExitStack() as stack:
        for service in ("watcher", "gang_planner", "binder"):
            flags = [f"--nats-url={nats_server.url}"]
            if service != "gang_planner":
                account = await as_account(control_plane.admin_kubeconfig, service)
                flags.append(f"--kubeconfig={arm64.put(account)}")
            log = stack.enter_context((tmp_path / f"{service}.log").open("w+"))
            command = ("python", "-m", f"services.{service}", *flags)
            stack.enter_context(arm64.running(log, *command))
        for name, members in (("part", 2), ("train", 3)):
            await api.create(
                f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
                {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
                | {"metadata": {"name": name}, "spec": {"minMember": 3}},
            )
            marks = {"scheduling.k8s.io/group-name": name}
            pods = [
                pod_manifest(f"{name}-{n}", scheduler_name="tutti", annotations=marks)
                for n in range(members)
            ]
            await create_pods(api, namespace, pods)

        async def whole() -> bool:
            found = await api.get(f"/api/v1/namespaces/{namespace}/pods")
            bound = {
                one["metadata"]["name"] for one in found["items"] if one["spec"].get("nodeName")
            }
            assert not [name for name in bound if name.startswith("part")], "a gang of three"
            return len(bound) == 3

        try:
            await eventually(whole, timeout_s=EMULATED_S, because="all three pods are bound")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{_ends_of_logs(tmp_path)}") from late


def _ends_of_logs(folder: Path) -> str:
    return "".join(one.read_text("utf-8")[-2000:] for one in sorted(folder.glob("*.log")))


def test_the_arm64_plugin_runs(builds: Builds, arm64: Emulated) -> None:
    """Its scripts need a shell, which the image has not: as they do, through its own loader."""
    archive = builds.first.file("kubectl-tutti-*-arm64.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(arm64.root / "plugin", filter="data")
    script = (arm64.root / "plugin" / "python").read_text("utf-8")
    loader = re.search(r'exec "\$here/(\S+)"', script)
    assert loader is not None
    libraries = "/plugin/lib/aarch64-linux-gnu:/plugin/usr/lib/aarch64-linux-gnu"
    python = (f"/plugin/{loader[1]}", "--library-path", libraries, "/plugin/usr/bin/python3.11")
    starter = (arm64.root / "plugin" / "kubectl-tutti").read_text("utf-8")
    code = starter.partition("-P -c '")[2].partition("'")[0]
    done = arm64.run(*python, "-P", "-c", code, "--version")
    assert VERSION in done.stdout
    assert "fits" in arm64.run(*python, "-P", "-c", code, "--help").stdout


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
        signature = builds.first.file("tutti-image-signature-*.oci.tar")
        _push(crane, UnpackedLayout(signature, tmp_path / "signature"), reference)
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
