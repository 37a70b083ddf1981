"""Runs programs of the arm64 image on this machine, by qemu's emulation of the processor.

The kernel starts them with qemu (binfmt_misc), but only in a user namespace of their own: for the
rest of the machine nothing is registered. That needs Linux 6.7, root, and qemu-user-static of
Debian.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from tests.support.debian import lacking

_QEMU: Final = "/usr/bin/qemu-aarch64-static"
#: What Debian registers: how an executable begins, and the emulator that opens it.
_RULE: Final = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
_BINFMT: Final = "/proc/sys/fs/binfmt_misc"
#: In the new user namespace, once users are mapped: an exec gives root its capabilities.
_OUTER: Final = (
    'echo > "/proc/self/fd/$READY"; read mapped; '
    'exec unshare --mount --propagation=private sh -c "$@"'
)
_REGISTER: Final = f'mount -t binfmt_misc none {_BINFMT} && cat "$RULE" > {_BINFMT}/register'
#: As the image's user, on a root that nothing can write.
_ENTER: Final = (
    f'{_REGISTER} && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && '
    'exec chroot --userspec=65532:65532 . /opt/tutti/bin/python -c "$START" "$@"'
)
_START: Final = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
_END_S: Final = 60.0
#: A pod has no other variables of this machine.
_PATH: Final = os.environ.get("PATH", "")


def cannot_emulate() -> str:
    """Why programs for arm64 cannot run here; "": they can."""
    if os.geteuid() != 0:
        return "only root may mount the image"
    if why := lacking({_QEMU: "qemu-user-static"}):
        return why
    with _namespace({"RULE": str(_RULE)}, (_REGISTER,), subprocess.PIPE) as probe:
        out, _ = probe.communicate()
    return f"the kernel registers no emulator in a namespace: {out}" if probe.returncode else ""


class Emulated:
    """An unpacked image for arm64, whose programs run here as the image's user."""

    def __init__(self, root: Path, environ: Sequence[str]) -> None:
        """`environ` is the image's."""
        self.root = root
        given = dict(one.split("=", 1) for one in environ)
        path = f"{given['PATH']}:{_PATH}"
        self._variables = {**given, "PATH": path, "START": _START, "RULE": str(_RULE)}

    def put(self, file: Path) -> str:
        """Copy a file into the image; its path there."""
        shutil.copyfile(file, self.root / "etc" / file.name)
        (self.root / "etc" / file.name).chmod(0o644)
        return f"/etc/{file.name}"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image; what it wrote to both outputs is in `stdout`."""
        arguments = (_ENTER, str(self.root), *command)
        with _namespace(self._variables, arguments, subprocess.PIPE) as process:
            out, _ = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out)

    @contextmanager
    def running(self, log: TextIO, *command: str) -> Iterator[None]:
        """A program of the image for the length of the block; then it is asked to end, and has to
        with status 0.
        """
        with _namespace(self._variables, (_ENTER, str(self.root), *command), log) as process:
            yield
            process.terminate()
            assert process.wait(_END_S) == 0, f"{command} ended with {process.returncode}"


@contextmanager
def _namespace(
    variables: dict[str, str], script: Sequence[str], output: int | TextIO
) -> Iterator[subprocess.Popen[str]]:
    """A shell script and its arguments as root of a new user namespace, with its own mounts."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        ("unshare", "--user", "sh", "-c", _OUTER, "sh", *script),
        env={"PATH": _PATH, **variables, "READY": str(writing)},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=(writing,),
        text=True,
    )
    os.close(writing)
    try:
        # Only then it is in the namespace, whose users are those of the machine.
        assert os.read(reading, 1), "the shell ended"
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{kind}").write_text("0 0 65536")
        assert process.stdin is not None
        with process.stdin as answer:
            answer.write("\n")
        # Closed, so `communicate` is not to flush it.
        process.stdin = None
        yield process
    finally:
        os.close(reading)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        if process.poll() is None:
            process.kill()
            process.wait()
