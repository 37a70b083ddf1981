"""A gang that its JobSet makes again keeps its place, although another one waits for it and
planners and watchers die in between.
"""

import pytest

from services.gang_planner.core.state import successors
from shared.contracts.decisions import GangDecision, NoteOpened
from shared.kube.resources import PODGROUPS_VOLCANO
from tests.simulation.running import Options, Run
from tests.simulation.workload import Plan, Shape

NODES = 4
RESTART_MS = 6_000
SEEDS = 4


def plan(name: str, arrives_ms: int, *, runs_ms: int, again: bool = False) -> Plan:
    """A gang that takes all nodes."""
    return Plan(
        name=name,
        arrives_ms=arrives_ms,
        size=NODES,
        minimum=NODES,
        cpu_milli=4_000,
        runs_ms=runs_ms,
        group=PODGROUPS_VOLCANO,
        owner="TFJob",
        mishaps=(("made_again", RESTART_MS - arrives_ms),) if again else (),
    )


def decided(seed: int, *, killed: str = "", again: bool = True) -> list[str]:
    """The gangs of all decisions, in order."""
    shape = Shape(gangs=0, over_ms=30_000, nodes=NODES, node_cpu_milli=6_000)
    run = Run(Options(seed=seed, shape=shape, fault_gap_ms=0, small=False, tenant=False))
    begin = run.world.begin

    def begin_with_both() -> None:
        begin()
        train = plan("train", 1_000, runs_ms=10_000, again=again)
        run.world.lives.begin([train, plan("rival", 3_000, runs_ms=500)])

    def kill() -> None:
        for one in list(run.loop.generations):
            if one.name == killed and one.alive:
                run.loop.kill(one)

    run.world.begin = begin_with_both  # type: ignore[method-assign]
    noted: list[object] = []

    def appended(_stream: str, _seq: int, record: object) -> None:
        """Kill it when the log knows of the first hold, or a moment later: a planner that starts
        cold before that cannot know what was there.
        """
        if isinstance(record, NoteOpened) and record.kind == "hold" and not noted:
            noted.append(record)
            run.loop.at(0.001 + seed * 0.2, kill)

    if killed:
        run.truth.listeners.append(appended)
    try:
        result = run.run()
        assert result.violations == []
        acts = [stored.act for _, stored in sorted(run.truth.acts.items())]
        return [one.gang.rpartition("/")[2] for one in acts if isinstance(one, GangDecision)]
    finally:
        run.close()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(
    "killed", ["", "gang-planner-0", "gang-planner-1", "watcher-0", "watcher-1"]
)
def test_what_waits_does_not_take_the_place_of_a_gang_that_is_made_again(
    seed: int, killed: str
) -> None:
    assert decided(seed, killed=killed) == ["train", "train", "rival"]


def test_the_same_gangs_without_a_restart_take_turns() -> None:
    assert decided(1, again=False) == ["train", "rival"]


def test_a_planner_that_knows_of_no_workloads_gives_the_place_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(successors, "origin_of", lambda _state, _pod: ("", ""))
    assert decided(1)[:2] == ["train", "rival"]
