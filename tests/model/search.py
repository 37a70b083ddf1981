"""All states, breadth first; every one judged, and a way out of every one looked for.

*Safety*: what must never be is looked for in every state and at every step. *Liveness*: from every
state, however it came about, the steps that are no faults lead to an end that is good,
whatever their order: the graph of those steps has no circle, and all its ends are good.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.model.binders import binder_steps, without_effect
from tests.model.planners import planner_steps
from tests.model.states import (
    ABSENT,
    WAITS,
    Bind,
    Mark,
    Pod,
    Record,
    Remove,
    Rules,
    State,
    Step,
    after,
    may,
    put,
    start,
)


class Found(AssertionError):
    """Something that must never be, with the steps that lead to it."""


@dataclass
class Result:
    """What was searched."""

    states: int = 0
    steps: int = 0
    #: Good ends, by what they are.
    ends: dict[str, int] = field(default_factory=dict)


def search(rules: Rules, *, states_max: int = 3_000_000) -> Result:
    """Visit every state.

    Raises:
        Found: A property does not hold; the message is the history, step by step.
    """
    first = canonical(start(rules), rules)
    numbers: dict[State, int] = {first: 0}
    came: list[tuple[int, str]] = [(-1, "start")]
    waits: deque[State] = deque([first])
    onwards: list[list[int]] = []
    good: list[str] = []
    steps = 0
    while waits:
        state = waits.popleft()
        here = len(onwards)
        free: list[int] = []
        for step in all_steps(state, rules):
            steps += 1
            following = canonical(step.state, rules)
            number = numbers.get(following)
            if number is None:
                number = numbers[following] = len(came)
                came.append((here, step.label))
                waits.append(following)
                wrong = unsafe(following, rules)
                if wrong:
                    raise Found(history_of(came, number, wrong))
            wrong = misdeed(state, step, rules)
            if wrong:
                raise Found(history_of(came, here, f"{step.label}: {wrong}"))
            if not step.fault:
                free.append(number)
        onwards.append(free)
        good.append(good_end(state, rules) if not free else "")
        assert len(came) <= states_max, f"more than {states_max} states"
    result = Result(len(came), steps)
    for number, free in enumerate(onwards):
        if free:
            continue
        if not good[number]:
            raise Found(history_of(came, number, "it stays like this for ever"))
        result.ends[good[number]] = result.ends.get(good[number], 0) + 1
    _no_circle(onwards, came)
    return result


def all_steps(state: State, rules: Rules) -> Iterator[Step]:
    """Everything that can happen."""
    yield from planner_steps(state, rules)
    yield from binder_steps(state, rules)
    for member, pod in enumerate(state.pods):
        if pod.node == ABSENT:
            made = state._replace(pods=put(state.pods, member, Pod(pod.gen + 1, WAITS)))
            yield Step(f"pod {member} is made again", False, made)
        elif may(state, rules, "pod-deleted"):
            gone = state._replace(
                pods=put(state.pods, member, Pod(pod.gen, ABSENT)),
                faults=after(state, rules, "pod-deleted"),
            )
            yield Step(f"a user deletes pod {member}", True, gone)


def canonical(state: State, rules: Rules) -> State:
    """Of states that differ in nothing that could matter, one: the two binders are alike, and what
    can have no effect any more is not in flight.
    """
    if state.late:
        state = state._replace(late=state.late - without_effect(state, rules))
    one, other = state.binders
    if hash(one) > hash(other):
        return state._replace(binders=(other, one))
    return state


def unsafe(state: State, rules: Rules) -> str:
    """What must never be: the API server's pods, and the log."""
    nodes = [pod.node for pod in state.pods if pod.node >= 0]
    if len(set(nodes)) < len(nodes):
        return f"a node is over-committed: {state.pods}"
    for gang in range(len(rules.gangs)):
        if rules.faults_max or not (releases := _releases(state, gang)):
            continue
        if not rules.poisoned & set(rules.of_gang(gang)):
            return f"gang {gang} is released, though nothing of it was refused"
        if releases > 1:
            return "a gang that a policy refuses was bound in part a second time"
    return ""


def misdeed(state: State, step: Step, rules: Rules) -> str:
    """What must never be done."""
    for position, published in enumerate(state.outcomes):
        if published is not None and step.state.outcomes[position] != published:
            return f"decision {position + 1} has two outcomes"
    if len(step.state.log) > len(state.log):
        appended = step.state.log[-1]
        if len({rules.gang_of(member) for member, _ in _pods_of(appended)}) > 1:
            return f"{appended} is about pods of two gangs"
        twice = _open_members(state) & _members_of(appended)
        if twice:
            return f"two open decisions on {sorted(twice)}"
    if step.fault:
        return ""
    for member, (before, now) in enumerate(zip(state.pods, step.state.pods, strict=True)):
        if before.node != ABSENT and now.node == ABSENT:
            victims = [one.victims for one in state.log if isinstance(one, Remove)]
            if not any((member, before.gen) in each for each in victims):
                return f"pod {member}, UID {before.gen}, is deleted without a decision"
    return ""


def _releases(state: State, gang: int) -> int:
    return sum(
        isinstance(one, Mark) and (one.kind, one.gang) == ("ReleaseOpened", gang)
        for one in state.log
    )


def _open_members(state: State) -> set[tuple[int, int]]:
    """Pods (member, gen) in decisions without an outcome."""
    answered = zip(state.log, state.outcomes, strict=True)
    return {
        one for record, published in answered if published is None for one in _members_of(record)
    }


def _members_of(record: Record) -> set[tuple[int, int]]:
    if isinstance(record, Bind):
        return {(member, gen) for member, gen, _ in record.members}
    return set()


def _pods_of(record: Record) -> set[tuple[int, int]]:
    return set(record.victims) if isinstance(record, Remove) else _members_of(record)


def good_end(state: State, rules: Rules) -> str:
    """What kind of end this is, for each gang; "" for one that is not good."""
    for position, record in enumerate(state.log):
        if not isinstance(record, Mark) and state.outcomes[position] is None:
            return ""
    free = rules.nodes - sum(pod.node >= 0 for pod in state.pods)
    ends = [_end_of(state, rules.of_gang(gang), gang, free) for gang in range(len(rules.gangs))]
    return ", ".join(ends) if all(ends) else ""


def _end_of(state: State, own: range, gang: int, free: int) -> str:
    """A gang's end: whole, released, or waiting because fewer nodes are free than it has members;
    "" for one that is not good.
    """
    bound = sum(state.pods[i].node >= 0 for i in own)
    notes = [
        one.kind
        for one in state.log
        if isinstance(one, Mark) and one.kind != "Epoch" and one.gang == gang
    ]
    if bound == len(own):
        return "whole" if "Started" in notes else ""
    if bound:
        return ""
    if not notes and free < len(own):
        return "waits"
    return "" if notes[-1:] == ["ReleaseOpened"] else "released"


def history_of(came: list[tuple[int, str]], number: int, ending: str) -> str:
    """The steps from the start to a state."""
    lines = [f"=> {ending}"]
    while number > 0:
        number, label = came[number][0], came[number][1]
        lines.append(label)
    return "\n".join(reversed(lines))


def _no_circle(onwards: list[list[int]], came: list[tuple[int, str]]) -> None:
    """Take away ends until nothing is left; what stays goes round for ever."""
    back: list[list[int]] = [[] for _ in onwards]
    left = [0] * len(onwards)
    for number, free in enumerate(onwards):
        for each in set(free):
            back[each].append(number)
        left[number] = len(set(free))
    ends = deque(number for number, count in enumerate(left) if not count)
    taken = 0
    while ends:
        taken += 1
        for each in back[ends.popleft()]:
            left[each] -= 1
            if not left[each]:
                ends.append(each)
    if taken < len(onwards):
        number = next(number for number, count in enumerate(left) if count)
        raise Found(history_of(came, number, "it can go round for ever without a fault"))
