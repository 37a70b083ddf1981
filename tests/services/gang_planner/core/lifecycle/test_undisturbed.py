"""Gangs that ask autoscalers to keep their nodes: from their binding until they have ended."""

import pytest

from shared.contracts import annotations
from shared.model.objects import Queue
from tests.services.gang_planner.core.losing import WORKER
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_pods


@pytest.mark.parametrize(
    ("on_group", "on_queue", "asks"),
    [
        pytest.param("true", None, True, id="its group"),
        pytest.param(None, "true", True, id="its queue"),
        pytest.param("false", "true", False, id="its queue, but not its group"),
        pytest.param(None, None, False, id="neither"),
    ],
)
def test_a_gang_asks_for_its_nodes_until_it_has_ended(
    on_group: str | None, on_queue: str | None, asks: bool
) -> None:
    scene = Scene([make_node("node-0"), make_node("node-1")])
    key = annotations.UNDISTURBED
    of_queue = ((key, on_queue),) if on_queue else ()
    of_group = ((key, on_group),) if on_group else ()
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=of_queue))
    scene.put(make_group("job", 2, queue="q", settings=of_group), *make_pods("job", 2, WORKER))
    (decision,) = scene.settle()
    assert decision.undisturbed is asks
    scene.run(decision)
    scene.settle()
    assert scene.verdicts["group-job"].ended == ()
    for pod in scene.pods_of("job"):
        scene.change(pod.uid, phase="Succeeded")
    scene.step(after_ms=2_000)
    scene.settle()
    verdict = scene.verdicts["group-job"]
    assert verdict.phase == "Completed"
    assert len(verdict.ended) == (2 if asks else 0)
