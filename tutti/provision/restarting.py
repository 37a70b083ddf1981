"""Ends a nats-server in a pod whose store failed, once it could store again: its kubelet starts it.

No probe of the server's own does: see `tutti.nats_store`. While nothing can be written it is left
alone, because each restart in vain doubles the kubelet's pause before the next one, up to five
minutes.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tutti.nats_store import NoHealth, store_problem, write_problem

LOOK_EVERY_S: Final = 5.0
#: It ends, is started, and reads its store.
PAUSE_S: Final = 60.0


async def keep_storing(
    monitor_url: str,
    folder: Path,
    pid_file: Path,
    say: Callable[[str], None],
    *,
    every_s: float = LOOK_EVERY_S,
    pause_s: float = PAUSE_S,
) -> None:
    """Watch the server until cancelled.

    Args:
        monitor_url: Its monitoring port.
        folder: Where it stores, as it is mounted here.
        pid_file: Where it writes its process id.
        say: Takes a line for each restart, and one when its store fails.
        every_s: Between two looks.
        pause_s: After a restart, before the next one.
    """
    told = ""
    while True:
        await asyncio.sleep(every_s)
        try:
            problem = await store_problem(monitor_url)
        except NoHealth:
            continue  # its liveness probe asks the same
        if not problem:
            told = ""
            continue
        obstacle = await asyncio.to_thread(write_problem, folder)
        if obstacle:
            if told != obstacle:
                told = obstacle
                say(f"nats-server stores nothing: {problem}; waiting until {folder} can be written")
            continue
        pid = await asyncio.to_thread(_end, pid_file)
        if pid:
            say(f"ended nats-server {pid}, which stores nothing: {problem}")
        else:
            say(f"no nats-server is named in {pid_file}")
        await asyncio.sleep(pause_s)


def _end(pid_file: Path) -> int:
    """The process that was asked to end; 0 when there is none."""
    try:
        pid = int(pid_file.read_text("ascii"))
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        return 0
    return pid
