"""A gang that runs, others that wait, and what is lost of it: what the tests of holds share."""

import msgspec

from shared.contracts.decisions import GangDecision, NoteClosed, NoteOpened
from shared.model.objects import Pod, Queue
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WORKER = make_shape({GPU: 1})


def running(size: int = 3, *, nodes: int = 3, minimum: int | None = None) -> Scene:
    """A gang `job` of `size` workers, one GPU each, running one to a node."""
    scene = Scene(make_node(f"node-{i}") for i in range(nodes))
    scene.put(make_group("job", size if minimum is None else minimum))
    scene.put(*make_pods("job", size, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def queue_up(scene: Scene, name: str = "rival") -> None:
    """A gang that waits for a GPU."""
    scene.put(make_group(name, 1, created_ms=1))
    scene.put(*make_pods(name, 1, WORKER))
    assert scene.settle() == []


def successor(index: int, *, shape: bytes = WORKER) -> Pod:
    """The pod that the controller makes again."""
    pod = make_pods("job", index + 1, shape)[index]
    return msgspec.structs.replace(pod, uid=f"{pod.uid}-again")


def place_of(scene: Scene, uid: str) -> str:
    return scene.pods[uid].node


def opened(scene: Scene) -> list[NoteOpened]:
    return [one for _, one in scene.records if isinstance(one, NoteOpened) and one.kind == "hold"]


def closed(scene: Scene) -> list[str]:
    return [
        one.reason for _, one in scene.records if isinstance(one, NoteClosed) and one.kind == "hold"
    ]


def bound_of(decisions: list[GangDecision]) -> dict[str, str]:
    return {one.uid: one.node for decision in decisions for one in decision.bindings}


def in_full_queue() -> Scene:
    """`job` runs on three of four nodes and is all that its queue may hold."""
    scene = Scene(make_node(f"node-{i}") for i in range(4))
    full = amounts(gpu=3)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    scene.put(make_group("job", 3, queue="q"))
    scene.put(*make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene
