"""Lives of a cluster with run limits and reservations: gangs come and end, by themselves or at
their limits. A life notes which instants were reserved for those that waited.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from services.gang_planner.core.foresight.reservations import HELD, RESERVED
from shared.contracts.decisions import EvictionDecision, GangDecision, NoteClosed, NoteOpened
from shared.model.objects import Node, Pod, PriorityClass, Queue
from tests.services.gang_planner.core.replayed import Recorded
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

MINUTE: Final = 60_000
HELD_MS: Final = 10 * MINUTE
SHAPES: Final = tuple(make_shape({"cpu": cpu}) for cpu in (1000, 2000, 4000))


class Manner(NamedTuple):
    """What happens in a life."""

    reservations: int = 1
    #: Several queues with weights.
    queues: int = 1
    priorities: int = 1
    preempts: bool = False
    #: Nodes differ.
    mixed: bool = False
    #: Members above the minimum.
    extras: bool = False
    #: One of so many gangs has no limit; 0: all have one.
    endless: int = 0
    #: Nodes and single pods are lost.
    losses: bool = False
    minutes: int = 120

    @property
    def conf(self) -> str:
        actions = "enqueue, allocate, preempt, reclaim, backfill"
        if not self.preempts:
            actions = "enqueue, allocate, backfill"
        shares = "{name: proportion}, " if self.queues > 1 else ""
        return f"""
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang, enablePreemptable: false, enableReclaimable: false}}]
- plugins: [{shares}{{name: predicates}}, {{name: nodeorder}}]
configurations:
- name: reserve
  arguments: {{reservations: {self.reservations}, heldSeconds: {HELD_MS // 1_000}}}
"""

    def nodes(self, chance: random.Random) -> list[Node]:
        amounts = [chance.choice((4000, 8000)) if self.mixed else 4000 for _ in range(6)]
        return [
            make_node(f"n{at}", {"cpu": amount, "pods": 110}) for at, amount in enumerate(amounts)
        ]


@dataclass
class GangLife:
    """What became of a gang."""

    name: str
    priority: int
    limit_ms: int
    #: Below its limit: it ends then by itself.
    runs_ms: int
    came_ms: int
    #: The first instant that was reserved, and when.
    promised_ms: int | None = None
    asked_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    #: When its reservation was made, moved or closed, and the reason.
    notes: list[tuple[int, str]] = field(default_factory=list)


class Life:
    """One life."""

    def __init__(self, manner: Manner, seed: int) -> None:
        self.manner = manner
        self.chance = random.Random(seed)
        self.scene = Recorded(manner.nodes(self.chance), conf=manner.conf)
        self.gangs: dict[str, GangLife] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.evictions = 0
        self._read = 0
        for number in range(manner.priorities):
            self.scene.put(
                PriorityClass(uid=f"p{number}", name=f"p{number}", resource_version=1, value=number)
            )
        for number in range(manner.queues):
            self.scene.put(
                Queue(
                    uid=f"q{number}",
                    dialect="volcano",
                    name=f"q{number}",
                    resource_version=1,
                    weight=1 + number,
                )
            )

    def run(self) -> "Life":
        for minute in range(self.manner.minutes):
            if self.chance.random() < 0.5 and minute < self.manner.minutes * 3 // 4:
                self._submit(f"g{minute}")
            if self.manner.losses and self.chance.random() < 0.05:
                self._lose()
            self._until(self.scene.now_ms + MINUTE)
        return self

    def _submit(self, name: str) -> None:
        chance, manner = self.chance, self.manner
        shape = chance.choice(SHAPES)
        size = chance.choice((1, 1, 1, 2, 2, 3, 4, 6, 10))
        minutes = chance.choice((2, 5, 10, 10, 20, 40))
        if manner.endless and not chance.randrange(manner.endless):
            minutes = 0
        least = max(size - chance.randrange(3), 1) if manner.extras else size
        priority = chance.randrange(manner.priorities)
        runs = minutes * MINUTE or 30 * MINUTE
        if chance.random() < 0.5:
            runs = chance.randrange(MINUTE, runs)
        now_ms = self.scene.now_ms
        self.gangs[name] = GangLife(name, priority, minutes * MINUTE, runs, now_ms)
        self.pods[name] = make_pods(name, size, shape, priority=priority)
        queue = f"q{chance.randrange(manner.queues)}"
        self.scene.put(
            make_group(
                name,
                least,
                run_limit_s=60 * minutes,
                queue=queue,
                priority_class=f"p{priority}",
            ),
            *self.pods[name],
        )

    def _lose(self) -> None:
        scene, chance = self.scene, self.chance
        nodes = sorted(scene.started_with[0], key=lambda node: node.name)
        node = chance.choice(nodes)
        if node.uid not in scene.objects:
            scene.put(node)
        elif chance.random() < 0.5:
            scene.remove(node)
            self._again([pod for pod in scene.pods.values() if pod.node == node.name], remove=True)
        elif running := sorted(pod.uid for pod in scene.pods.values() if pod.node):
            self._again([scene.pods[chance.choice(running)]], remove=True)

    def _again(self, pods: list[Pod], *, remove: bool) -> None:
        """The controllers of these pods make them again."""
        if remove:
            self.scene.remove(*pods)
        names = {pod.name for pod in pods}
        made = [pod for of_gang in self.pods.values() for pod in of_gang if pod.name in names]
        self.scene.make_again(made)

    def _until(self, end_ms: int) -> None:
        scene = self.scene
        for _ in range(2_000):
            self._turn()
            due = [end_ms]
            if scene.wakeup_ms is not None:
                due.append(max(scene.wakeup_ms, scene.now_ms))
            due += [
                life.started_ms + life.runs_ms
                for life in self.gangs.values()
                if life.started_ms is not None and life.ended_ms is None
            ]
            if min(due) >= end_ms:
                scene.now_ms = end_ms
                return
            scene.now_ms = max(min(due), scene.now_ms)
        raise AssertionError("the planner wants to be woken again and again")

    def _turn(self) -> None:
        """Gangs end, a cycle runs, and what it decided is carried out."""
        scene = self.scene
        for life in self.gangs.values():
            over = life.started_ms is not None and scene.now_ms >= life.started_ms + life.runs_ms
            if over and life.ended_ms is None:
                self._end(life)
        scene.step()
        evicted = self._notice()
        scene.carry_out(phase="Running")
        for name in evicted:
            self._again(self.pods[name], remove=False)

    def _end(self, life: GangLife) -> None:
        life.ended_ms = self.scene.now_ms
        self.scene.remove(*self.scene.pods_of(life.name))
        self.scene.remove(self.scene.objects[f"group-{life.name}"])

    def _notice(self) -> list[str]:
        """Read the records of the last cycle; returns the gangs that preemptors evict."""
        records = self.scene.records[self._read :]
        self._read = len(self.scene.records)
        evicted: set[str] = set()
        for _, record in records:
            match record:
                case GangDecision():
                    life = self.gangs[record.gang.partition("/")[2]]
                    if life.started_ms is None:
                        life.started_ms = self.scene.now_ms
                case EvictionDecision() if record.via == "eviction":
                    evicted |= {one.uid.partition("-")[0] for one in record.victims}
                    self.evictions += len(record.victims)
                case EvictionDecision():
                    self.gangs[record.gang.partition("/")[2]].ended_ms = self.scene.now_ms
                case NoteOpened() | NoteClosed() if record.kind == "reservation":
                    self._follow(record)
                case _:
                    pass
        for name in evicted:
            self.gangs[name].started_ms = self.gangs[name].promised_ms = None
        return sorted(evicted)

    def _follow(self, note: NoteOpened | NoteClosed) -> None:
        """A gang's reservation was made, moved or closed."""
        life, now_ms = self.gangs.get(note.gang_id.removeprefix("group-")), self.scene.now_ms
        if life is None:
            # Its group is gone, and pods of it are left.
            return
        if isinstance(note, NoteClosed):
            life.notes.append((now_ms, note.reason))
            if note.reason == "NotEntitled":
                # Other queues deserve what it waited for.
                life.promised_ms = None
            return
        life.notes.append((now_ms, note.reason))
        if note.reason == RESERVED and life.promised_ms is None:
            life.promised_ms, life.asked_ms = note.until_ms, now_ms

    def late(self) -> list[str]:
        """Gangs that started later than a minute after the first instant that was reserved, and
        for which no gang of higher priority came in the meantime.
        """
        found: list[str] = []
        for life in self.gangs.values():
            if life.promised_ms is None:
                continue
            started_ms = self.scene.now_ms if life.started_ms is None else life.started_ms
            higher = any(
                other.priority > life.priority and life.asked_ms <= other.came_ms <= started_ms
                for other in self.gangs.values()
            )
            if started_ms > life.promised_ms + MINUTE and not higher:
                found.append(life.name)
        return found

    def unbounded_holds(self) -> list[str]:
        """Gangs for which capacity was held again before as long a time had passed."""
        found: list[str] = []
        for life in self.gangs.values():
            held = [at_ms for at_ms, reason in life.notes if reason == HELD]
            if any(later - at < 2 * HELD_MS for at, later in pairwise(held)):
                found.append(life.name)
        return found
