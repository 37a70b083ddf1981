"""Plays a page's commands as its reader types them, and compares what they say with the page.

One session is one page: a folder of its own as HOME and working directory, our programs and
kubectl on PATH. `cd` and `export` last. What ends with `&` runs until the session ends, and the
next command is typed once it has said what the page tells. What only looks at the cluster is typed
again until it says what the page tells, since the cluster gets there in its own time.

On the page `…` stands for anything. Blanks and line ends count as one blank; times, ports, dates
and UIDs are as good as any other. A command of which the page tells nothing has to end well.
"""

import os
import re
import signal
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final, Self

from tests.documents.blocks import Block, Command

#: A loaded machine may take its time; who waits this long has failed.
SAYS_S: Final = 120.0
_AGAIN_S: Final = 0.2
_STOP_S: Final = 60.0
#: Commands that change nothing: typing them twice does no harm.
_LOOKS: Final = re.compile(
    r"^(?:\.venv/bin/)?(?:tutti (?:why|status|queues|fits|trace|top|timeline"
    r"|\w+ (?:list|view|get|describe))|kubectl (?:get|describe|\w+ --dry-run)|vcctl \w+ list"
    r"|vqueues|vjobs|curl|grep)\b"
)
#: What differs from run to run, and the word that stands for it on both sides.
_VARIES: Final = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "INSTANT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "CLOCK"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "PORT"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|m|h)(?:\d+s)?\b"), "TIME"),
    (re.compile(r"-{3,}"), "---"),
)


class Differs(AssertionError):
    """A command did not end well, or did not say what the page tells."""


def same(told: str, said: str) -> bool:
    """Whether a command said what the page tells; all of it, but for what varies."""
    parts = [re.escape(_plain(part)).replace(r"\ ", r"\s*") for part in told.split("…")]
    return re.fullmatch(r"\s*" + r".*?".join(parts) + r"\s*", _plain(said), re.DOTALL) is not None


def _plain(text: str) -> str:
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return re.sub(r"\s+", " ", text)


class Session:
    """The terminal in which one page is typed. Leaving it ends whatever runs behind `&`."""

    def __init__(self, folder: Path, kubectl: Path) -> None:
        programs = folder / ".programs"
        programs.mkdir()
        (programs / "kubectl").symlink_to(kubectl)
        self.folder = folder
        self._at = folder
        self._environ = {
            name: value for name, value in os.environ.items() if not name.startswith("KUBE")
        } | {
            "HOME": str(folder),
            "PATH": os.pathsep.join(
                [str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]]
            ),
            # What a wide terminal shows: narrow tables would be folded.
            "COLUMNS": "140",
        }
        self._environ.pop("XDG_DATA_HOME", None)
        self._behind: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        deaf: list[object] = []
        for process, output in reversed(self._behind):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                deaf.append(process.args)
            output.close()
        assert not deaf, f"did not stop within {_STOP_S:g} s: {deaf}"

    def play(self, found: Sequence[Block]) -> None:
        """Type the blocks' commands in order, and write their files.

        Raises:
            Differs: With the place in the page, what it tells and what was said.
        """
        for block in found:
            if block.what == "file":
                (self._at / block.detail).write_text(block.text)
                continue
            for command in block.commands():
                try:
                    self.type(command)
                except Differs as differs:
                    raise Differs(f"{block.title}: $ {command.typed}\n{differs}") from None

    def type(self, command: Command) -> None:
        """Type one command. Raises Differs."""
        words = command.typed.split()
        if words[0] == "cd":
            self._at = (self._at / words[1]).resolve()
        elif words[0] == "export":
            name, _, value = " ".join(words[1:]).partition("=")
            self._environ[name] = value.replace("$PWD", str(self._at))
        elif command.typed.rstrip().endswith("&"):
            self._leave_running(command)
        else:
            self._run(command)

    def _run(self, command: Command) -> None:
        deadline_s = time.monotonic() + SAYS_S
        while True:
            done = subprocess.run(
                ["bash", "-c", command.typed],
                cwd=self._at,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SAYS_S,
                check=False,
            )
            good = same(command.says, done.stdout) if command.says else done.returncode == 0
            if good:
                return
            if not _LOOKS.match(command.typed) or time.monotonic() > deadline_s:
                raise Differs(
                    f"the page tells:\n{command.says}\nwas said (status {done.returncode}):\n"
                    f"{done.stdout}"
                )
            time.sleep(_AGAIN_S)

    def _leave_running(self, command: Command) -> None:
        path = self.folder / f".behind-{len(self._behind)}"
        output = path.open("wb")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.typed.rstrip().removesuffix('&')}"],
            cwd=self._at,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        self._behind.append((process, output))
        deadline_s = time.monotonic() + SAYS_S
        while not same(command.says, path.read_text()):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise Differs(f"the page tells:\n{command.says}\nwas said:\n{path.read_text()}")
            time.sleep(_AGAIN_S)
