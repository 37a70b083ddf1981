"""Compares the decisions of another configuration with those of a recording.

Both are given the same records at the same instants. CLUSTER shows the effects of the recorded
decisions only: a gang that the other configuration places earlier or elsewhere is from then on
where the recording has it. So every difference is one of decisions, not of their consequences.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.recorder import Frame
from services.gang_planner.replay.reproduction import Inputs, apply_up_to, apply_without_cycle
from shared.contracts.decisions import Cycle, EvictionDecision, GangDecision, cycle_of
from shared.contracts.verdicts import Verdict

#: First sequence of the other configuration's decisions: the recording's records name its own ones.
_OWN_SEQ: Final = 1 << 48


class Comparison(NamedTuple):
    """The number of gangs with equal decisions, and one line per difference."""

    equal: int
    differences: list[str]
    #: Pods bound and pods evicted, by the recording and by the other configuration.
    bound: tuple[int, int]
    evicted: tuple[int, int]


class _Decisions:
    """The decisions about each gang: its first instant, its members' nodes, and the pods evicted
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
    # They are about decisions that this planner did not make.
    inputs.outcomes.clear()
    planner = Planner(parse_configuration(policy))
    planner.restore(inputs.checkpoint)
    planner.load_snapshot(inputs.pages)
    recorded, replayed = _Decisions(), _Decisions()
    verdicts: dict[str, Verdict] = {}
    last: Cycle | None = None
    own_seq = _OWN_SEQ
    for seq, record, _ in inputs.decisions:
        cycle = cycle_of(record)
        if cycle is None:
            apply_without_cycle(planner, inputs, seq, record)
            continue
        if not inputs.reach(cycle):
            break
        recorded.add(record, cycle.now_ms)
        if cycle != last:
            last = cycle
            apply_up_to(planner, inputs, cycle)
            own_seq = _step(planner, own_seq, cycle, replayed, verdicts)
    return _compared(recorded, replayed, verdicts)


def _step(
    planner: Planner, seq: int, cycle: Cycle, replayed: _Decisions, verdicts: dict[str, Verdict]
) -> int:
    """Run cycles at one instant until no more is due, as a busy planner does."""
    now_ms = cycle.now_ms
    while True:
        step = planner.step(now_ms, synced_ms=cycle.synced_ms)
        for verdict in step.verdicts:
            verdicts[f"{verdict.namespace}/{verdict.name}"] = verdict
        for record in (*step.decisions, *step.notes):
            replayed.add(record, now_ms)
            seq += 1
            planner.decided(seq, record)
        if step.next_wakeup_ms is None or step.next_wakeup_ms > now_ms:
            return seq


def _compared(
    recorded: _Decisions, replayed: _Decisions, verdicts: dict[str, Verdict]
) -> Comparison:
    equal = 0
    lines: list[str] = []
    for gang in sorted({*recorded.nodes, *replayed.nodes, *recorded.victims, *replayed.victims}):
        lines_of_gang = _difference(gang, recorded, replayed, verdicts)
        victims = recorded.victims.get(gang, 0), replayed.victims.get(gang, 0)
        if victims[0] != victims[1]:
            lines_of_gang = [
                *lines_of_gang,
                f"{victims[1]} pods are evicted for or of it instead of {victims[0]}",
            ]
        equal += not lines_of_gang
        lines += [f"{gang}: {text}" for text in lines_of_gang]
    return Comparison(
        equal,
        lines,
        (_total(recorded.nodes), _total(replayed.nodes)),
        (sum(recorded.victims.values()), sum(replayed.victims.values())),
    )


def _difference(
    gang: str, recorded: _Decisions, replayed: _Decisions, verdicts: dict[str, Verdict]
) -> list[str]:
    before, after = recorded.nodes.get(gang), replayed.nodes.get(gang)
    if before is None and after is None:
        return []
    if after is None:
        verdict = verdicts.get(gang)
        why = verdict.why.sentence if verdict is not None and verdict.why is not None else ""
        return [f"is not placed{': ' if why else ''}{why}"]
    if before is None:
        return [f"is placed at {_clock(replayed.at_ms[gang])}, and was not"]
    lines_of_gang: list[str] = []
    if recorded.at_ms[gang] != replayed.at_ms[gang]:
        at = _clock(replayed.at_ms[gang])
        lines_of_gang.append(f"is placed at {at} instead of {_clock(recorded.at_ms[gang])}")
    moved = (after - before).total()
    if moved:
        lines_of_gang.append(f"{moved} of {after.total()} members go to other nodes")
    elif after != before:
        lines_of_gang.append(f"{after.total()} members are placed instead of {before.total()}")
    return lines_of_gang


def _total(nodes: dict[str, Counter[str]]) -> int:
    return sum(counts.total() for counts in nodes.values())


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
