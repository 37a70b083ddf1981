"""Keeps a nats-server that runs beside this process, in a pod, up to date and able to store.

The server reads certificates and users only at its start and on SIGHUP, while the kubelet replaces
mounted Secrets at any time. Existing connections stay open; the new files apply to new connections.
If the server cannot read a new file, it continues with the old one.

After a failed write the server stores nothing until it restarts (see `tutti.nats_server`), and none
of its probes detects that. This process then stops it, so that the kubelet restarts it, but only
once the folder can be written: each failed restart doubles the kubelet's pause, up to five minutes.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tutti.nats_server import NoHealth, store_problem, write_problem

#: Kubelets take a minute or two to update a mounted Secret, and no event reports it.
RELOAD_CHECK_S: Final = 10.0
STORE_CHECK_S: Final = 5.0
#: How long a server may take to stop, start again and read its store.
RESTART_S: Final = 60.0


async def keep_loaded(
    folders: Sequence[Path],
    pid_file: Path,
    say: Callable[[str], None],
    *,
    every_s: float = RELOAD_CHECK_S,
) -> None:
    """Send SIGHUP to the process of `pid_file` whenever a file in the folders has changed, until
    cancelled. A server that does not run reads its files when it starts.
    """
    known = await asyncio.to_thread(_read_files, folders)
    say(f"watching {len(known)} files")
    while True:
        await asyncio.sleep(every_s)
        try:
            content = await asyncio.to_thread(_read_files, folders)
        except OSError as error:
            say(f"cannot read the files: {error}")  # for example while they are being replaced
            continue
        if content == known:
            continue
        changed = sorted(
            path for path in {*content, *known} if content.get(path) != known.get(path)
        )
        pid = await asyncio.to_thread(_signal, pid_file, signal.SIGHUP)
        if pid is None:
            say(f"no nats-server is named in {pid_file}")
        else:
            known = content
            say(f"signalled nats-server {pid} to reload: {', '.join(changed)}")


async def keep_storing(
    monitor_url: str,
    folder: Path,
    pid_file: Path,
    say: Callable[[str], None],
    *,
    every_s: float = STORE_CHECK_S,
    restart_s: float = RESTART_S,
) -> None:
    """Stop the server whenever its store has failed and could work again, until cancelled.

    `folder` is its store, as mounted here. `say` receives a line for each restart, and one when its
    store fails. After a restart the next check waits `restart_s`.
    """
    reported = ""
    while True:
        await asyncio.sleep(every_s)
        try:
            problem = await store_problem(monitor_url)
        except NoHealth:
            continue  # its liveness probe detects that
        if not problem:
            reported = ""
            continue
        obstacle = await asyncio.to_thread(write_problem, folder)
        if obstacle:
            if reported != obstacle:
                reported = obstacle
                say(f"nats-server stores nothing: {problem}; waiting until {folder} can be written")
            continue
        pid = await asyncio.to_thread(_signal, pid_file, signal.SIGTERM)
        if pid is None:
            say(f"no nats-server is named in {pid_file}")
        else:
            say(f"stopped nats-server {pid}, which stores nothing: {problem}")
        await asyncio.sleep(restart_s)


def _read_files(folders: Sequence[Path]) -> dict[str, bytes]:
    # Kubelets keep ..data and folders named by time beside the files.
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in folder.iterdir()
        if path.name[0] != "." and path.is_file()
    }


def _signal(pid_file: Path, number: signal.Signals) -> int | None:
    """The process that was signalled; None when there is none."""
    try:
        pid = int(pid_file.read_text("ascii"))
        os.kill(pid, number)
    except (OSError, ValueError):
        return None
    return pid
