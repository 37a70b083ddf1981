"""Runs a page's commands as its reader would, and compares their output with the page.

One session is one page: its own folder as HOME and working directory, our programs and kubectl on
PATH. `cd` and `export` last. A command that ends with `&` runs until the session ends; the next one
runs once its output matches the page. A command that only reads is repeated until its output
matches, because the cluster changes in its own time.

On the page `…` stands for any text. Blanks and line ends count as one blank; times, ports, dates
and UIDs may differ. A command without output on the page must exit with status 0.
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

#: A command that needs longer than this fails, also on a loaded machine.
OUTPUT_S: Final = 120.0
_AGAIN_S: Final = 0.2
_STOP_S: Final = 60.0
#: Commands that change nothing, and may be repeated.
_READING: Final = re.compile(
    r"^(?:\.venv/bin/)?(?:tutti (?:why|status|queues|fits|trace|top|timeline"
    r"|\w+ (?:list|view|get|describe))|kubectl (?:get|describe|\w+ --dry-run)|vcctl \w+ list"
    r"|vqueues|vjobs|curl|grep)\b"
)
#: Text that differs from run to run, and the word that replaces it on both sides.
_VARYING: Final = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "INSTANT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "CLOCK"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "PORT"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|m|h)(?:\d+s)?\b"), "TIME"),
    (re.compile(r"-{3,}"), "---"),
)


class OutputDiffers(AssertionError):
    """A command failed, or its output is not that of the page."""


def matches(expected: str, output: str) -> bool:
    """Whether an output is completely that of the page, apart from text that varies."""
    parts = [re.escape(_plain(part)).replace(r"\ ", r"\s*") for part in expected.split("…")]
    pattern = r"\s*" + r".*?".join(parts) + r"\s*"
    return re.fullmatch(pattern, _plain(output), re.DOTALL) is not None


def _plain(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return re.sub(r"\s+", " ", text)


class Session:
    """The terminal of one page. Leaving it ends the commands behind `&`."""

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
            # A narrow terminal would fold tables.
            "COLUMNS": "140",
        }
        self._environ.pop("XDG_DATA_HOME", None)
        self.background: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        ignored: list[object] = []
        for process, output in reversed(self.background):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                ignored.append(process.args)
            output.close()
        assert not ignored, f"did not stop within {_STOP_S:g} s: {ignored}"

    def play(self, found: Sequence[Block]) -> None:
        """Run the blocks' commands in order, and write their files.

        Raises:
            OutputDiffers: With the place in the page, its output and the real one.
        """
        for block in found:
            if block.what == "file":
                (self._at / block.detail).write_text(block.text)
                continue
            for command in block.commands():
                try:
                    self.type(command)
                except OutputDiffers as error:
                    raise OutputDiffers(f"{block.title}: $ {command.typed}\n{error}") from None

    def type(self, command: Command) -> None:
        """Run one command. Raises OutputDiffers."""
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
        deadline_s = time.monotonic() + OUTPUT_S
        while True:
            done = subprocess.run(
                ["bash", "-c", command.typed],
                cwd=self._at,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=OUTPUT_S,
                check=False,
            )
            good = matches(command.output, done.stdout) if command.output else done.returncode == 0
            if good:
                return
            if not _READING.match(command.typed) or time.monotonic() > deadline_s:
                raise OutputDiffers(
                    f"on the page:\n{command.output}\noutput (status {done.returncode}):\n"
                    f"{done.stdout}"
                )
            time.sleep(_AGAIN_S)

    def _leave_running(self, command: Command) -> None:
        path = self.folder / f".background-{len(self.background)}"
        output = path.open("wb")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.typed.rstrip().removesuffix('&')}"],
            cwd=self._at,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        self.background.append((process, output))
        deadline_s = time.monotonic() + OUTPUT_S
        while not matches(command.output, path.read_text()):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise OutputDiffers(f"on the page:\n{command.output}\noutput:\n{path.read_text()}")
            time.sleep(_AGAIN_S)
