"""The same records give the same bytes: twice in a process, and under another hash seed."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec

from services.gang_planner.core.scoring import FULL
from shared.contracts.decisions import EvictionDecision
from shared.model.objects import HostPort, Queue, Taint
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

ROOT = Path(__file__).parents[4]


def a_life_in_bytes(seed: int = 11) -> str:
    """Digest of everything that a planner said during a busy life."""
    chance = random.Random(seed)
    shapes = [
        make_shape({"cpu": 700}),
        make_shape({"cpu": 300, "memory": 3 << 30}),
        make_shape({GPU: 1}),
        make_shape({"cpu": 100}, host_ports=(HostPort(port=80),)),
        make_shape(),
    ]
    scene = Scene(
        make_node(
            f"n{i:02d}",
            labels=(("zone", f"z{i % 3}"),),
            taints=(Taint(key="k", value=str(i % 2), effect="PreferNoSchedule"),),
        )
        for i in range(20)
    )
    for name in ("red", "blue"):
        scene.put(
            Queue(
                uid=name,
                dialect="volcano",
                name=name,
                resource_version=1,
                weight=1 + (name == "red"),
            )
        )
    digest = hashlib.sha256()
    for serial in range(60):
        size = chance.randint(1, 6)
        name = f"g{serial:02d}"
        queue = chance.choice(["red", "blue", ""])
        scene.put(make_group(name, size, created_ms=chance.randint(0, 9), queue=queue))
        scene.put(*make_pods(name, size, chance.choice(shapes), priority=chance.randint(0, 2)))
        if serial % 5 == 0:
            scene.put(*make_pods(name, 1, chance.choice(shapes), role="ps"))
        step = scene.step(after_ms=300)
        for message in (*step.decisions, *step.notes, *step.verdicts):
            digest.update(msgspec.msgpack.encode(message))
        for decision in step.decisions:
            if isinstance(decision, EvictionDecision):
                scene.remove(*(scene.pods[victim.uid] for victim in decision.victims))
            elif chance.random() < 0.7:
                scene.run(decision)
            else:
                scene.outcome(decision, {decision.bindings[0].uid: "refused"})
        _something_ends(scene, chance)
    for page in scene.planner.checkpoint(scene.outcome_seq):
        digest.update(msgspec.msgpack.encode(page))
    return digest.hexdigest()


def _something_ends(scene: Scene, chance: random.Random) -> None:
    running = sorted(uid for uid, pod in scene.pods.items() if pod.phase == "Running")
    if running and chance.random() < 0.5:
        scene.change(chance.choice(running), phase="Succeeded")
    elif running:
        # It fails, room is held for it, and its controller makes it again.
        lost = scene.pods[chance.choice(running)]
        scene.change(lost.uid, phase="Failed")
        scene.put(msgspec.structs.replace(lost, uid=f"{lost.uid}-again", node="", phase="Pending"))


def test_the_same_records_give_the_same_bytes_under_two_hash_seeds() -> None:
    here = a_life_in_bytes()
    assert here == a_life_in_bytes()
    assert here != a_life_in_bytes(12)
    for seed in ("1", "4242"):
        found = subprocess.run(
            [sys.executable, "-m", "tests.services.gang_planner.core.test_determinism"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == here


def test_decisions_do_not_depend_on_the_order_in_which_nodes_and_pods_arrive() -> None:
    def decided(order: int) -> dict[str, str]:
        nodes = [make_node(f"n{i}") for i in range(6)][::order]
        scene = Scene(nodes)
        scene.put(make_group("a", 9))
        scene.put(*make_pods("a", 9, make_shape({"cpu": FULL // 100}))[::order])
        (decision,) = scene.settle()
        return scene.where(decision)

    assert decided(1) == decided(-1)


if __name__ == "__main__":
    sys.stdout.write(a_life_in_bytes())
