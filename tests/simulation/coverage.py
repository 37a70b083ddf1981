"""Which kind of fault met which state of the protocol; a run set must have seen every pair."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tests.simulation.truth import STATES

#: What faults are called here, by the group in which they are required: a pair of every group with
#: every state must have been met.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "planner killed": ("killed gang-planner",),
    "watcher killed": ("killed watcher",),
    "binder killed": ("killed binder",),
    "process paused": ("pause",),
    "process terminated": ("terminate",),
    "NATS restarted": ("nats_restart",),
    "NATS connection lost": ("nats_cut", "nats_partition"),
    "NATS slow, late": ("nats_slow_disk", "nats_delay"),
    "acknowledgement lost": ("nats_lost_acks",),
    "redelivered early": ("nats_redelivery",),
    "stream full": ("nats_full",),
    "NATS storage lost": ("nats_wiped",),
    "API server down or hung": ("api_down", "api_hung"),
    "API request or answer lost": (
        "api.lost_request", "api.lost_reply", "api.broken_applied", "api.silence",
    ),
    "API busy or broken": ("api.throttled", "api.broken", "api.slow"),
    "watch late, cut, compacted": (
        "api.watch_late", "api.watch_cut", "api_watches_cut", "api_compacted",
    ),
    "etcd restored": ("etcd_restored",),
    "node lost": ("node_dies", "node_deleted"),
    "node cordoned": ("node_cordoned",),
    "foreign pods": ("foreign_burst",),
}  # fmt: skip
_GROUP_OF: Final = {kind: group for group, kinds in GROUPS.items() for kind in kinds}


class Coverage:
    """Counts pairs."""

    def __init__(self, pairs: Iterable[tuple[str, str, int]] = ()) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        for group, state, count in pairs:
            self.pairs[group, state] += count

    def hit(self, kind: str, states: set[str]) -> None:
        """A fault of that kind happened while the protocol was in these states."""
        group = _GROUP_OF.get(kind)
        if group is not None:
            for state in states:
                self.pairs[group, state] += 1

    def add(self, other: "Coverage") -> None:
        """Count another run's pairs as well."""
        self.pairs.update(other.pairs)

    def rows(self) -> list[tuple[str, str, int]]:
        """For a result that travels as JSON."""
        return sorted((*pair, count) for pair, count in self.pairs.items())

    def missing(self) -> list[tuple[str, str]]:
        """Pairs never met."""
        return [
            (group, state) for group in GROUPS for state in STATES if not self.pairs[group, state]
        ]

    def table(self) -> str:
        """Return a table of all pairs."""
        head = f"{'':28}" + "".join(f"{state:>10}" for state in STATES)
        lines = [
            f"{group:28}" + "".join(f"{self.pairs[group, state]:>10}" for state in STATES)
            for group in GROUPS
        ]
        return "\n".join([head, *lines])
