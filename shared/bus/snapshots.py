"""Fetches the watcher's snapshot, which every reader of CLUSTER begins with."""

import asyncio
from typing import Final

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.cluster import SnapshotPage, SnapshotRequest

#: Between two requests for a snapshot that no watcher could answer yet.
_RETRY_S: Final = 0.1


class NewEpoch(Exception):
    """Another watcher writes CLUSTER: its snapshot replaces the cluster state."""

    def __init__(self, epoch: int) -> None:
        """Name the epoch."""
        super().__init__(f"watcher epoch {epoch}")
        self.epoch = epoch


async def fetch_snapshot(
    bus: Bus, *, epoch_min: int = 0, kinds: tuple[str, ...] = (), timeout_s: float = 5.0
) -> tuple[SnapshotPage, ...]:
    """Ask the watcher for the whole cluster state of epoch `epoch_min` or newer, as long as it
    takes.

    Pages belong to one frozen snapshot; one that the watcher has dropped meanwhile is asked for
    again.

    Args:
        bus: To ask over.
        epoch_min: An older snapshot is not good enough.
        kinds: Those that are wanted; () for all.
        timeout_s: For the answer to one question.
    """
    while True:
        pages = await _try_snapshot(bus, kinds, timeout_s)
        if pages and pages[0].epoch >= epoch_min:
            return tuple(pages)
        await asyncio.sleep(_RETRY_S)


async def _try_snapshot(bus: Bus, kinds: tuple[str, ...], timeout_s: float) -> list[SnapshotPage]:
    pages: list[SnapshotPage] = []
    while not pages or len(pages) < pages[0].pages:
        name = pages[0].snapshot if pages else ""
        question = SnapshotRequest(snapshot=name, page=len(pages), kinds=kinds)
        try:
            answer = await ask(
                bus,
                subjects.ASK_SNAPSHOT,
                question,
                codec.decode_snapshot_answer,
                timeout_s=timeout_s,
            )
        except NoAnswer:
            return []
        if not isinstance(answer, SnapshotPage):
            return []
        pages.append(answer)
    return pages
