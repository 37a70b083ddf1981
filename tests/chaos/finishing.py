"""Users of two schedulers, whose gangs finish by themselves and need more than all nodes offer.

A gang is one distributed job: its pods end together, once its minimum has run at the same time for
a while. So half of a gang never finishes and never frees its nodes, and halves that wait for each
other are a deadlock which a run shows as gangs that do not finish.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from shared.contracts import annotations
from tests.chaos.forms import FORMS, KUBE_SCHEDULER, TUTTI, Form
from tests.chaos.gangs import Gang, Users
from tests.controlplane.client import Object

#: Of a gang of Tutti that had its minimum and lost a member to a kubelet's refusal.
DEGRADED_GRACE_S: Final = 10
_SIZES: Final = (2, 6)
_RUNS_S: Final = (2.0, 8.0)
_TUTTI_SHARE: Final = 0.5


@dataclass
class FinishingUsers(Users):
    """Keeps `alive_max` gangs alive, of both schedulers, for as long as gangs come.

    Attributes:
        finish: Lets the containers of a pod end, by its UID.
        finished: Gangs of which the minimum succeeded, by name.
    """

    finish: Callable[[str], None] = field(kw_only=True)
    finished: set[str] = field(default_factory=set)

    @override
    def probe(self) -> Gang:
        return self._new_of(TUTTI, "probe", size=2, minimum=2)

    @override
    def rush(self, count: int) -> None:
        """None beside those that come anyway: there are always some on their way."""

    def request(self, scheduler: str, size: int) -> Gang:
        """One gang of this size, all of whose members are needed."""
        return self._new_of(scheduler, "last", size=size, minimum=size)

    def unfinished(self) -> list[str]:
        """Names of gangs that have not finished."""
        return sorted(self.gangs.keys() - self.finished)

    @override
    def arrive(self) -> None:
        while len(self.alive()) < self.alive_max:
            self._draw()

    @override
    def _draw(self) -> None:
        size = self.rng.randint(*_SIZES)
        if self.rng.random() >= _TUTTI_SHARE:
            self._new_of(KUBE_SCHEDULER, "kube", size=size, minimum=size)
            return
        elastic = self.rng.random() < 0.3
        self._new_of(TUTTI, "gang", size=size, minimum=max(2, size - 2) if elastic else size)

    def _new_of(self, scheduler: str, kind: str, *, size: int, minimum: int) -> Gang:
        forms: tuple[Form, ...] = (*FORMS, "kubernetes") if scheduler == TUTTI else ("kubernetes",)
        settings = {annotations.DEGRADED_GRACE_SECONDS: str(DEGRADED_GRACE_S)}
        return self._new(
            kind,
            size=size,
            minimum=minimum,
            owned=True,
            lives_s=self.rng.uniform(*_RUNS_S),
            form=self.rng.choice(forms),
            scheduler=scheduler,
            settings=settings if scheduler == TUTTI else {},
        )

    @override
    def is_over(self, gang: Gang, pods: dict[int, Object], now_s: float) -> bool:
        phases = Counter(pod["status"].get("phase") for pod in pods.values())
        if phases["Succeeded"] >= gang.minimum:
            self.finished.add(gang.name)
            return True
        if phases["Running"] + phases["Succeeded"] < gang.minimum:
            gang.whole_at_s = None  # it lost a member: what is left waits for the next one
        if gang.whole_at_s is not None and now_s > gang.whole_at_s + gang.lives_s:
            for pod in pods.values():
                if pod["status"].get("phase") == "Running":
                    self.finish(pod["metadata"]["uid"])
        return False
