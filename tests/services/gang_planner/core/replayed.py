"""A scene recorded as a standby records it, and the proof that a replay has the same holds."""

from typing import Any

from typing_extensions import override

from shared.contracts import codec
from shared.model.objects import Node
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_node

NODES = [make_node(f"node-{i}") for i in range(6)]


class Recorded(LoggedScene):
    """A scene that keeps the records of CLUSTER as a standby does."""

    def __init__(self, nodes: list[Node], *, conf: str = "") -> None:
        self.cluster: list[tuple[int, Any]] = []
        self.started_with = nodes, conf
        super().__init__(nodes, conf=conf)

    @override
    def apply(self, record: Any) -> None:
        super().apply(record)
        self.cluster.append((self.cluster_seq, record))


def prove_replay(scene: Recorded) -> None:
    """Run only the cycles that wrote something, on a new planner; they write it again, byte for
    byte.
    """
    nodes, conf = scene.started_with
    planner = LoggedScene(nodes, conf=conf).planner
    cluster, outcomes = list(scene.cluster), list(scene.outcomes)
    waiting: list[Any] = []
    for seq, record in scene.records:
        cycle = record.cycle
        assert cycle is not None
        if not waiting:
            while cluster and cluster[0][0] <= cycle.cluster_seq:
                planner.apply_cluster(*cluster.pop(0))
            while outcomes and outcomes[0][0] <= cycle.outcomes_seq:
                planner.apply_outcome(*outcomes.pop(0))
            step = planner.step(cycle.now_ms, cycle.in_flight_max, cycle.synced_ms)
            waiting = [*step.decisions, *step.notes]
        assert waiting, f"nothing was decided where the log has {record}"
        again = waiting.pop(0)
        planner.decided(seq, again)
        assert codec.encode(again) == codec.encode(record), f"{again}\ninstead of {record}"
    assert not waiting
    validate(planner)
