"""A standby's recording of a planner that took over without having seen a loss."""

from operator import itemgetter
from typing import Any

import pytest
from typing_extensions import override

from services.gang_planner.recorder import Frame
from services.gang_planner.replay.reproduction import reproduce
from shared.contracts import codec
from shared.contracts.cluster import Gone, PodChanges
from shared.contracts.decisions import EpochOpened, NoteOpened
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import GPU, make_group, make_node, make_pods, make_shape
from tests.support.snapshots import snapshot_of

NODES = [make_node(f"node-{index}") for index in range(3)]
WORKER = make_shape({GPU: 1})


class _Recorded(LoggedScene):
    """A scene with a standby that records what is in CLUSTER, read by the planner or not."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        super().__init__(NODES)

    @override
    def apply(self, record: Any) -> None:
        super().apply(record)
        self._record(record)

    def _record(self, record: Any) -> None:
        payload = codec.encode(record)
        self.frames.append(Frame(kind="cluster", seq=self.cluster_seq, payload=payload))

    def lose_unseen(self, uid: str) -> None:
        """A pod is deleted while no planner but the standby runs."""
        gone = Gone(uid=uid, resource_version=self.pods.pop(uid).resource_version + 1)
        self.cluster_seq += 1
        self._record(PodChanges(epoch=self.epoch, at_ms=self.now_ms, removed=(gone,)))

    def recording(self) -> list[Frame]:
        """The frames of the whole recording."""
        page = snapshot_of(NODES, at_ms=10_000, cluster_seq=1)
        first = EpochOpened(epoch=1, planner="first", at_ms=10_000, cluster_epoch=1)
        log = sorted([(1, first), *self.records, *self.epochs], key=itemgetter(0))
        return [
            Frame(kind="configuration", payload=self.conf.source.encode()),
            Frame(kind="snapshot", payload=codec.encode(page)),
            *self.frames,
            *(
                Frame(kind="outcome", seq=seq, payload=codec.encode(outcome))
                for seq, outcome in self.outcomes
            ),
            *(Frame(kind="decision", seq=seq, payload=codec.encode(record)) for seq, record in log),
        ]


@pytest.mark.parametrize("quiet", [False, True], ids=["a loss", "no loss, and the minimum raised"])
def test_the_first_cycles_of_a_planner_that_took_over_are_reproduced(quiet: bool) -> None:
    scene = _Recorded()
    scene.put(make_group("job", 3), *make_pods("job", 3, WORKER))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    if not quiet:
        scene.lose_unseen("job-worker-1")
    scene.restart()
    scene.until_quiet()
    # Later shortfalls are no unseen losses, even in the first cycle that writes a record.
    scene.put(make_group("job", 4, resource_version=2))
    scene.put(make_group("other", 1, created_ms=1), *make_pods("other", 1, make_shape({"cpu": 1})))
    scene.until_quiet()
    notes = [one for _, one in scene.records if isinstance(one, NoteOpened)]
    assert [one.reason for one in notes] == ([] if quiet else ["MemberMissing"])
    report = reproduce(scene.recording())
    assert (report.differences, report.cut_off) == ([], 0)
    assert report.equal == len(scene.records)
