"""What another configuration would have decided on the same recording.

Both see the same records at the same instants; CLUSTER keeps showing what the recorded decisions
came to, so a gang that the other configuration places earlier or elsewhere is from then on where
the recording has it. Every difference is thus one of decisions, not of what followed from them.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.recorder import Frame
from services.gang_planner.replay.reproduction import Inputs, apply_up_to
from shared.contracts.decisions import (
    Cycle,
    DecisionRecord,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    cycle_of,
)
from shared.contracts.verdicts import Verdict

#: Decisions made here are numbered from here: the recording's outcomes and pods name its own.
_OWN_SEQ: Final = 1 << 48


class Comparison(NamedTuple):
    """Decisions about gangs that are the same, and in a line each those that are not."""

    equal: int
    differences: list[str]
    #: Pods bound and pods evicted, by the recording and by the other configuration.
    bound: tuple[int, int]
    evicted: tuple[int, int]


class _Deeds:
    """What was decided of each gang: when first, where its members went, which pods were evicted
    for it.
    """

    def __init__(self) -> None:
        self.at_ms: dict[str, int] = {}
        self.nodes: dict[str, Counter[str]] = {}
        self.victims: dict[str, int] = {}

    def add(self, record: object, at_ms: int) -> None:
        if isinstance(record, GangDecision) and not record.again:
            self.at_ms.setdefault(record.gang, at_ms)
            nodes = self.nodes.setdefault(record.gang, Counter())
            nodes.update(binding.node for binding in record.bindings)
        elif isinstance(record, EvictionDecision):
            self.victims[record.gang] = self.victims.get(record.gang, 0) + len(record.victims)


def compare(frames: Iterable[Frame], policy: str) -> Comparison:
    """Run the recording through a `volcano-scheduler.conf`.

    Raises:
        ConfigurationError: The text is not valid.
    """
    inputs = Inputs(frames)
    # They report the results of decisions that this planner did not make.
    inputs.outcomes.clear()
    planner = Planner(parse_configuration(policy))
    planner.restore(inputs.checkpoint)
    planner.load_snapshot(inputs.pages)
    theirs, ours = _Deeds(), _Deeds()
    verdicts: dict[str, Verdict] = {}
    last: Cycle | None = None
    own_seq = _OWN_SEQ
    for seq, record, _ in inputs.decisions:
        cycle = cycle_of(record)
        if cycle is None:
            _take(planner, seq, record)
            continue
        if not inputs.reach(cycle):
            break
        theirs.add(record, cycle.now_ms)
        if cycle != last:
            last = cycle
            apply_up_to(planner, inputs, cycle)
            own_seq = _step(planner, own_seq, cycle, ours, verdicts)
    return _compared(theirs, ours, verdicts)


def _take(planner: Planner, seq: int, record: DecisionRecord) -> None:
    planner.apply_decision(seq, record)
    if isinstance(record, EpochOpened):
        planner.lead(record.epoch)


def _step(
    planner: Planner, seq: int, cycle: Cycle, ours: _Deeds, verdicts: dict[str, Verdict]
) -> int:
    """Cycles at one instant until nothing is left to do, as a busy planner makes them."""
    now_ms = cycle.now_ms
    while True:
        step = planner.step(now_ms, synced_ms=cycle.synced_ms)
        for verdict in step.verdicts:
            verdicts[f"{verdict.namespace}/{verdict.name}"] = verdict
        for record in (*step.decisions, *step.notes):
            ours.add(record, now_ms)
            seq += 1
            planner.decided(seq, record)
        if step.next_wakeup_ms is None or step.next_wakeup_ms > now_ms:
            return seq


def _compared(theirs: _Deeds, ours: _Deeds, verdicts: dict[str, Verdict]) -> Comparison:
    equal = 0
    lines: list[str] = []
    for gang in sorted({*theirs.nodes, *ours.nodes, *theirs.victims, *ours.victims}):
        said = _difference(gang, theirs, ours, verdicts)
        victims = theirs.victims.get(gang, 0), ours.victims.get(gang, 0)
        if victims[0] != victims[1]:
            said = [*said, f"{victims[1]} pods are evicted for or of it instead of {victims[0]}"]
        equal += not said
        lines += [f"{gang}: {text}" for text in said]
    return Comparison(
        equal,
        lines,
        (_total(theirs.nodes), _total(ours.nodes)),
        (sum(theirs.victims.values()), sum(ours.victims.values())),
    )


def _difference(gang: str, theirs: _Deeds, ours: _Deeds, verdicts: dict[str, Verdict]) -> list[str]:
    before, after = theirs.nodes.get(gang), ours.nodes.get(gang)
    if before is None and after is None:
        return []
    if after is None:
        verdict = verdicts.get(gang)
        why = verdict.why.sentence if verdict is not None and verdict.why is not None else ""
        return [f"is not placed{': ' if why else ''}{why}"]
    if before is None:
        return [f"is placed at {_clock(ours.at_ms[gang])}, and was not"]
    said: list[str] = []
    if theirs.at_ms[gang] != ours.at_ms[gang]:
        at = _clock(ours.at_ms[gang])
        said.append(f"is placed at {at} instead of {_clock(theirs.at_ms[gang])}")
    moved = (after - before).total()
    if moved:
        said.append(f"{moved} of {after.total()} members go to other nodes")
    elif after != before:
        said.append(f"{after.total()} members are placed instead of {before.total()}")
    return said


def _total(nodes: dict[str, Counter[str]]) -> int:
    return sum(one.total() for one in nodes.values())


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
