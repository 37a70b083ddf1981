"""Has a running nats-server read its files again when they were replaced.

The server reads certificates and users at its start and on SIGHUP only; mounted Secrets change by
themselves. Connections stay: new ones are judged by the new files. The server does not take a file
that it cannot read, and continues with what it has.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

#: Kubelets take a minute or two to bring a changed Secret; no event reports when they did.
LOOK_EVERY_S: Final = 10.0


async def keep_loaded(
    folders: Sequence[Path],
    pid_file: Path,
    say: Callable[[str], None],
    *,
    every_s: float = LOOK_EVERY_S,
) -> None:
    """Send SIGHUP to the process of `pid_file` whenever a file in the folders is another than
    before, until cancelled. A server that is not there reads its files when it starts.
    """
    known = await asyncio.to_thread(_look, folders)
    say(f"watching {len(known)} files")
    while True:
        await asyncio.sleep(every_s)
        try:
            found = await asyncio.to_thread(_look, folders)
        except OSError as error:
            say(f"cannot look at the files: {error}")  # they are being replaced at this moment
            continue
        if found == known:
            continue
        changed = sorted(path for path in {*found, *known} if found.get(path) != known.get(path))
        pid = await asyncio.to_thread(_hang_up, pid_file)
        if pid:
            known = found
            say(f"signalled nats-server {pid} to read again: {', '.join(changed)}")
        else:
            say(f"no nats-server is named in {pid_file}")


def _look(folders: Sequence[Path]) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    # Kubelets put ..data and folders with times beside what is meant.
    return (path for path in folder.iterdir() if path.name[0] != "." and path.is_file())


def _hang_up(pid_file: Path) -> int:
    """The process that was signalled; 0 when there is none."""
    try:
        pid = int(pid_file.read_text("ascii"))
        os.kill(pid, signal.SIGHUP)
    except (OSError, ValueError):
        return 0
    return pid
