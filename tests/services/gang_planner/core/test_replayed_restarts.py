"""A replay runs only the cycles that wrote something, and passes on the same holds, byte for byte:
gangs that their workloads make again under old names and new ones, with others that wait.
"""

import random

import msgspec
import pytest

from shared.contracts.decisions import NoteClosed, NoteOpened
from shared.model.objects import PodGroup
from shared.model.reference_objects import Workload
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import GPU, make_group, make_pods, make_shape

SHAPES = (make_shape({GPU: 1}), make_shape({GPU: 1, "cpu": 500}))
STEPS = 90
SEEDS = 16


class Operators:
    """Workloads, the gang that each has made, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.scene = Recorded(NODES)
        self.gangs: dict[str, str] = {}
        self.serial = 0

    def workload(self, name: str) -> Workload:
        return Workload(
            uid=f"set-{name}", namespace="team", name=f"jobsets/{name}", resource_version=1
        )

    def make(self, owner: str, size: int) -> None:
        self.serial += 1
        old = self.gangs.get(owner)
        name = old if old and self.chance.random() < 0.5 else f"{owner}-{self.serial}"
        self.gangs[owner] = name
        shape = SHAPES[self.chance.random() < 0.2]
        pods = [
            msgspec.structs.replace(
                one, uid=f"{one.uid}-{self.serial}", workload=f"jobsets/{owner}"
            )
            for one in make_pods(name, size, shape)
        ]
        made = make_group(name, size, uid=f"group-{self.serial}", created_ms=self.serial)
        parts = [made, *pods]
        if self.chance.random() < 0.3:
            self.chance.shuffle(parts)
        for one in parts:
            self.scene.put(one)
            if self.chance.random() < 0.2:
                self.scene.step()

    def delete(self, owner: str) -> None:
        gone = [
            one
            for one in self.scene.objects.values()
            if isinstance(one, PodGroup) and one.name == self.gangs[owner]
        ]
        everything = [*gone, *self.scene.pods_of(self.gangs[owner])]
        self.chance.shuffle(everything)
        for one in everything:
            self.scene.remove(one)
            if self.chance.random() < 0.3:
                self.scene.step(after_ms=self.chance.choice([0, 50]))

    def something(self) -> None:
        owner = self.chance.choice(sorted(self.gangs) or [""])
        match self.chance.randrange(6):
            case 0 if len(self.gangs) < 4:
                owner = f"w{self.serial}"
                self.scene.put(self.workload(owner))
                self.make(owner, self.chance.randint(1, 4))
            case 1 | 2 if owner:
                size = max(len(self.scene.pods_of(self.gangs[owner])), 1)
                self.delete(owner)
                self.scene.now_ms += self.chance.choice([0, 200, 70_000])
                if self.chance.random() < 0.5:
                    self.scene.until_quiet()
                self.make(owner, max(size + self.chance.choice([-1, 0, 0, 0, 1]), 1))
            case 3 if owner:
                workload = self.workload(owner)
                ends_first = self.chance.random() < 0.5
                if ends_first:
                    self.scene.remove(workload)
                self.delete(owner)
                if not ends_first:
                    self.scene.remove(workload)
                del self.gangs[owner]
            case 4 if self.scene.pods:
                uid = self.chance.choice(sorted(self.scene.pods))
                self.scene.change(uid, phase="Failed")
            case _:
                node = self.chance.choice(NODES)
                if node.uid not in self.scene.objects:
                    self.scene.put(node)
                elif self.chance.random() < 0.3:
                    self.scene.remove(node)


def live(seed: int) -> Recorded:
    """Operators make gangs and make them again, until nothing more happens."""
    operators = Operators(seed)
    scene = operators.scene
    for _ in range(STEPS):
        scene.now_ms += operators.chance.choice([1, 200, 2_000])
        operators.something()
        if operators.chance.random() < 0.7:
            scene.until_quiet()
            scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=70_000)
    return scene


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_cycles_that_wrote_something_pass_on_the_same(seed: int) -> None:
    scene = live(seed)
    prove_replay(scene)
    held = scene.state.holds.by_uid.values()
    assert not [hold for hold in held if hold.until_ms <= scene.now_ms]


def test_the_stories_are_about_gangs_that_are_made_again() -> None:
    ends: set[str] = set()
    passed_on = 0
    for seed in range(SEEDS):
        owners: dict[str, str] = {}
        for _, record in live(seed).records:
            if isinstance(record, NoteClosed) and record.kind == "hold":
                ends.add(record.reason)
            if isinstance(record, NoteOpened) and record.workload:
                before = owners.setdefault(record.pod_uids[0], record.gang_id)
                passed_on += before != record.gang_id
    assert ends >= {"Filled", "WorkloadEnded", "Expired", "ScaledDown", "OtherShape"}
    assert passed_on > 10
