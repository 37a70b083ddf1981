"""Detects streams of NATS that acknowledge no appends.

A server that cannot write (disk full, read-only or lost volume) answers requests, but does not
acknowledge appends. So unanswered appends during a connection are the sign. They are counted for
each stream: one may have failed while others still store.
"""

import asyncio
from collections.abc import Callable
from typing import Final

#: Longer than a server's restart or the election of a stream's leader takes.
PATIENCE_S: Final = 5.0
#: After so long without another attempt the state of a stream is unknown: a planner that has become
#: a standby appends nothing.
FORGET_S: Final = 20.0

Report = Callable[[str, str], None]


class AppendHealth:
    """Reports `nats storage` as unwell while a stream confirms nothing for `PATIENCE_S`."""

    def __init__(self, report: Report) -> None:
        """Prepare; `report` takes a topic and its problem, "" when it has none."""
        self._report = report
        #: By the first word of its subjects: when a stream's silence began, and its last attempt.
        self._silent: dict[str, tuple[float, float]] = {}
        self._reported: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """The streams that confirm nothing."""
        return tuple(
            sorted(
                stream
                for stream, (since_s, last_s) in self._silent.items()
                if last_s - since_s >= PATIENCE_S
            )
        )

    def confirmed(self, subject: str) -> None:
        """An append was stored, or refused with a reason: the server works."""
        self._forget(_stream(subject))

    def unanswered(self, subject: str) -> None:
        """An append got no answer although there was a connection."""
        loop, stream = asyncio.get_running_loop(), _stream(subject)
        now_s = loop.time()
        since_s, _ = self._silent.get(stream, (now_s, now_s))
        self._silent[stream] = since_s, now_s
        loop.call_later(FORGET_S, self._expire, stream, now_s)
        self._report_changes()

    def reconnected(self) -> None:
        """The server may be another one: forget the state of the last one."""
        self._silent.clear()
        self._report_changes()

    def _expire(self, stream: str, last_s: float) -> None:
        if stream in self._silent and self._silent[stream][1] == last_s:
            self._forget(stream)

    def _forget(self, stream: str) -> None:
        if self._silent.pop(stream, None) is not None:
            self._report_changes()

    def _report_changes(self) -> None:
        failed = self.failed
        if failed == self._reported:
            return
        self._reported = failed
        self._report(
            "nats storage",
            f"NATS stores nothing ({', '.join(failed)}): is its volume full, read-only or gone?"
            if failed
            else "",
        )


def _stream(subject: str) -> str:
    """Which stream an append is for: the first word of its subject, or a bucket's name."""
    words = subject.split(".")
    return words[1] if words[0] == "$KV" else words[0]
