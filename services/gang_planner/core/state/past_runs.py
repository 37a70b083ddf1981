"""How much of their run limits the gangs of the past used, for estimates of starts.

Each run that has ended by itself, or at its limit, is one byte: the part of its limit that it took,
on a scale on which runs of a minute and of a month have the same precision. They are kept by queue
and namespace, the newest ones, and travel in the checkpoints of DECISIONS: there they are durable
and bounded, and each planner reads these anyhow. No decision depends on them, so it does no harm
that a takeover loses the runs that have ended since the last checkpoint.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from shared.contracts.decisions import PAST_RUN_STEPS, PastRunsOfUser

_BYTE_MAX: Final = 255
#: Runs of a user, a namespace in a queue, and users.
_RUNS_MAX: Final = 48
_USERS_MAX: Final = 400
#: With fewer runs of a user, those of its queue say more; with fewer of these, all runs.
_ENOUGH: Final = 10


class PastRuns:
    """The table; users that had no run for longest are forgotten first."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], bytes] = {}

    def add(self, queue: str, namespace: str, ran_ms: int, limit_ms: int) -> None:
        """Count a run that took so long of its limit."""
        steps = PAST_RUN_STEPS * math.log2(max(limit_ms, 1) / max(ran_ms, 1))
        key, part = (queue, namespace), min(max(round(steps), 0), _BYTE_MAX)
        self._parts[key] = (self._parts.pop(key, b"") + bytes((part,)))[-_RUNS_MAX:]
        if len(self._parts) > _USERS_MAX:
            del self._parts[next(iter(self._parts))]

    def listed(self) -> tuple[PastRunsOfUser, ...]:
        """All runs, for a checkpoint; users in the order in which they had their last run."""
        return tuple(
            PastRunsOfUser(queue=queue, namespace=namespace, parts=parts)
            for (queue, namespace), parts in self._parts.items()
        )

    def load(self, listed: Iterable[PastRunsOfUser]) -> None:
        """Replace all runs by those of a checkpoint."""
        self._parts = {
            (user.queue, user.namespace): user.parts[-_RUNS_MAX:] for user in listed if user.parts
        }


class PartsOfLimits:
    """What past runs say about those to come; as of its construction."""

    def __init__(self, runs: Iterable[PastRunsOfUser]) -> None:
        by_user: dict[tuple[str, str], bytes] = {}
        by_queue: dict[str, bytes] = {}
        for user in runs:
            by_user[user.queue, user.namespace] = user.parts
            by_queue[user.queue] = by_queue.get(user.queue, b"") + user.parts
        self._by_user = {key: _sorted(parts) for key, parts in by_user.items()}
        self._by_queue = {queue: _sorted(parts) for queue, parts in by_queue.items()}
        self._all = _sorted(b"".join(by_queue.values()))

    @property
    def known(self) -> bool:
        """Whether there are enough runs to say anything."""
        return len(self._all) >= _ENOUGH

    def lasts_ms(self, queue: str, namespace: str, run_ms: int, limit_ms: int, percent: int) -> int:
        """For how long a run that has taken `run_ms` lasts in all, if `percent` of a hundred that
        took longer than this were at most as long; in milliseconds.
        """
        lengths = [int(part * limit_ms) for part in self._of(queue, namespace)]
        longer = [length for length in lengths if length > run_ms]
        return longer[len(longer) * percent // 100] if longer else limit_ms

    def _of(self, queue: str, namespace: str) -> Sequence[float]:
        for parts in (self._by_user.get((queue, namespace), ()), self._by_queue.get(queue, ())):
            if len(parts) >= _ENOUGH:
                return parts
        return self._all


def _sorted(parts: bytes) -> list[float]:
    """As parts of a limit, the shortest first."""
    return sorted(2.0 ** (-steps / PAST_RUN_STEPS) for steps in parts)
