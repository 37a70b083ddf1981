"""What planners can do: take over, read, decide, append. Their fence is the product's own machine.

The planner's core is restated here in small (the real one runs in tests/simulation): what it
assumes follows from the log that it has read, the outcomes it has heard and the pods it sees.
"""

from collections.abc import Iterator

from shared.bus import fence_machine
from shared.bus.fence_machine import FenceMachine
from tests.model.interning import Interned
from tests.model.states import (
    ABSENT,
    ATTEMPTS_MAX,
    WAITS,
    Append,
    Bind,
    Delivery,
    Mark,
    Planner,
    Pod,
    Published,
    Record,
    Remove,
    Request,
    Rules,
    State,
    Step,
    after,
    fresh_planner,
    may,
    put,
)

fences = Interned()


def planner_steps(state: State, rules: Rules) -> Iterator[Step]:
    """Everything that planners, and the stream they write to, can do in this state."""
    for index, planner in enumerate(state.planners):
        if planner.role == "standby":
            yield from _take_over(state, rules, index)
            continue
        yield from _learn(state, index)
        if planner.role == "leads" and planner.record is None:
            record, why = decide(state, rules, index)
            if record is not None:
                yield Step(f"planner {index}: {why}", False, _append(state, index, record))
        if may(state, rules, f"crash-planner-{index}"):
            faults = after(state, rules, f"crash-planner-{index}")
            yield Step(
                f"planner {index} is killed", True, _restart(state, index)._replace(faults=faults)
            )
    for append in state.appends:
        yield from _arrive(state, rules, append)


# ---------- being the writer


def _take_over(state: State, rules: Rules, index: int) -> Iterator[Step]:
    """A standby has read the whole log, and appends its epoch behind it."""
    others = any(one.role != "standby" for one in state.planners)
    if others and not may(state, rules, "takeover"):
        return
    faults = after(state, rules, "takeover") if others else state.faults
    read = len(state.log)
    life = state.planners[index].life
    taking = fresh_planner(life, len(state.pods))._replace(
        role="taking", read=read, fence=fences.number(FenceMachine(read))
    )
    begun = state._replace(planners=put(state.planners, index, taking), faults=faults)
    label = f"planner {index} takes over" + (" from one that only sleeps" if others else "")
    yield Step(label, others, _append(begun, index, Mark("", "Epoch")))


def _append(state: State, index: int, record: Record) -> State:
    planner = state.planners[index]
    named = record._replace(id=f"{index}.{planner.life}.{planner.read}")
    fence, action = fences.step(planner.fence, "begin", named.id)
    changed = planner._replace(fence=fence, record=named)
    return _carry_on(state._replace(planners=put(state.planners, index, changed)), index, action)


def _carry_on(state: State, index: int, action: fence_machine.Action) -> State:
    """Do what the fence wants until it waits for the stream again, or has ended."""
    planner = state.planners[index]
    while True:
        match action:
            case fence_machine.Send(expected=expected):
                assert planner.record is not None
                sent = Append(index, expected, planner.record)
                return state._replace(
                    planners=put(state.planners, index, planner), appends=state.appends | {sent}
                )
            case fence_machine.Read(seq=seq):
                if len(state.log) >= seq:
                    given = fences.step(planner.fence, "on_read", state.log[seq - 1].id)
                else:
                    given = fences.step(planner.fence, "on_read_nothing", 1, len(state.log))
                planner, action = planner._replace(fence=given[0]), given[1]
            case fence_machine.Done(last=last):
                epoch = last if planner.role == "taking" else planner.epoch
                leads = planner._replace(role="leads", epoch=epoch, read=last, record=None)
                return state._replace(planners=put(state.planners, index, leads))
            case _:
                return _restart(state, index)


def _restart(state: State, index: int) -> State:
    """The process ends and starts as standby; what it has sent may still arrive."""
    planner = fresh_planner(state.planners[index].life + 1, len(state.pods))
    appends = frozenset(
        one._replace(planner=-1) if one.planner == index else one for one in state.appends
    )
    return tidy(state._replace(planners=put(state.planners, index, planner), appends=appends))


def _arrive(state: State, rules: Rules, append: Append) -> Iterator[Step]:
    """A record reaches the stream, is refused there, or is not answered."""
    index = append.planner
    left = state._replace(appends=state.appends - {append})
    if append.expected == len(state.log) or not rules.fenced:
        label, stored = f"{append.record} is stored", _store(left, append.record)
        if index < 0:
            yield Step(f"late: {label}", False, tidy(stored))
        elif len(stored.log) != append.expected + 1:
            # Without a fence the answer names another sequence: the planner's assertion ends it.
            yield Step(label, False, _restart(stored, index))
        else:
            yield Step(label, False, _answer(stored, index, "on_ack", len(stored.log)))
    elif index >= 0:
        yield Step(
            f"{append.record} is refused", False, _answer(left, index, "on_refused", "another")
        )
    if index >= 0 and may(state, rules, "append-unanswered"):
        left = left._replace(faults=after(state, rules, "append-unanswered"))
        late = left._replace(appends=left.appends | {append._replace(planner=-1)})
        for each, what in ((left, "is lost"), (late, "is late")):
            yield Step(f"{append.record} {what}", True, _answer(each, index, "on_no_answer"))


def _answer(state: State, index: int, method: str, *arguments: object) -> State:
    planner = state.planners[index]
    fence, action = fences.step(planner.fence, method, *arguments)
    changed = planner._replace(fence=fence)
    return tidy(
        _carry_on(state._replace(planners=put(state.planners, index, changed)), index, action)
    )


def _store(state: State, record: Record) -> State:
    delivery = None if isinstance(record, Mark) else Delivery(0, "ready")
    return state._replace(
        log=(*state.log, record),
        outcomes=(*state.outcomes, None),
        deliveries=(*state.deliveries, delivery),
    )


def tidy(state: State) -> State:
    """Forget copies that no planner waits for and that the fence will refuse for ever."""
    gone = {one for one in state.appends if one.planner < 0 and one.expected < len(state.log)}
    return state._replace(appends=state.appends - gone) if gone else state


# ---------- reading and deciding


def _learn(state: State, index: int) -> Iterator[Step]:
    """The watcher's log and the outcomes reach a planner whenever they do."""
    planner = state.planners[index]
    if planner.view != state.pods:
        seen = planner._replace(view=state.pods)
        yield Step(
            f"planner {index} sees {state.pods}",
            False,
            state._replace(planners=put(state.planners, index, seen)),
        )
    published = frozenset(
        i for i, one in enumerate(state.outcomes[: planner.read]) if one is not None
    )
    if published != planner.heard:
        knows = planner._replace(heard=published)
        yield Step(
            f"planner {index} hears outcomes",
            False,
            state._replace(planners=put(state.planners, index, knows)),
        )


class Memory:
    """What a planner makes of what it has read: `core.decisions.inflight` in small."""

    __slots__ = (
        "assumed",
        "bad",
        "late",
        "occupied",
        "refused",
        "taken",
        "unanswered",
        "unresolved",
    )

    def __init__(self, view: tuple[Pod, ...]) -> None:
        #: Members that must not be planned: bound, on their way, or gone.
        self.taken = {i for i, pod in enumerate(view) if pod.node != WAITS}
        #: Nodes that must not be given away.
        self.occupied = {pod.node for pod in view if pod.node >= 0}
        #: Pairs that failed.
        self.bad: set[tuple[int, int]] = set()
        #: Some decision has no outcome, as far as it has heard.
        self.unanswered = False
        #: A policy refused a member that still waits, since the last release.
        self.refused = False
        #: A binding that is not shown yet, and not refused: it may still become whole by itself.
        self.assumed = False
        #: A binding in the log is of a pod that this view does not know yet.
        self.unresolved = False
        #: Room is kept for a request that may come late.
        self.late = False


def remember(state: State, rules: Rules, planner: Planner, own: range) -> Memory:
    """Work out what is assumed for the gang with these members, from the log as far as it is read.
    Nodes are occupied whichever gang's records occupy them.
    """
    view = planner.view
    memory = Memory(view)
    for position, record in enumerate(state.log[: planner.read]):
        if isinstance(record, Mark):
            memory.refused &= record.kind != "ReleaseClosed" or rules.of_gang(record.gang) != own
            continue
        published = state.outcomes[position] if position in planner.heard else None
        if is_about(record, own):
            memory.unanswered |= published is None
        if isinstance(record, Remove):
            continue
        for place, (member, gen, node) in enumerate(record.members):
            pod = view[member]
            if pod.gen > gen or (pod.gen == gen and pod.node != WAITS):
                continue  # bound or gone: retired
            memory.unresolved |= pod.gen < gen
            if published is None or published.results[place] == "bound":
                if published is not None or rules.decision_assumes:
                    memory.taken.add(member)
                    memory.occupied.add(node)
                    memory.assumed |= member in own
            else:
                _not_bound(state, rules, memory, (position, place), published, own)
    return memory


def is_about(record: Record, own: range) -> bool:
    """Whether a decision is about the gang with these members."""
    if isinstance(record, Bind):
        return record.members[0][0] in own
    return isinstance(record, Remove) and record.victims[0][0] in own


def _not_bound(
    state: State,
    rules: Rules,
    memory: Memory,
    at: tuple[int, int],
    published: Published,
    own: range,
) -> None:
    """An outcome says that a member was not bound: its room ends, or stays for a late request."""
    position, place = at
    record = state.log[position]
    assert isinstance(record, Bind)
    member, _, node = record.members[place]
    result = published.results[place]
    if result == "gone":
        memory.taken.add(member)  # the pause lasts longer than the watch lags
    memory.bad.add((member, node))
    memory.refused |= result == "refused" and not published.unproved and member in own
    definite = result != "unknown" and published.delivered == 1
    if definite and not (rules.late_is_published and published.late[place]):
        return
    if rules.late_room_is_kept and may_land(state, position, place):
        memory.occupied.add(node)
        memory.late |= member in own


def may_land(state: State, position: int, place: int) -> bool:
    """Whether a request may still bind that member: what two minutes are longer than.

    One that is in flight; or one that a binder has yet to send, unless it sleeps: a binder that
    wakes up after so long sends nothing.
    """
    post = Request("post", place)
    if (position + 1, post) in state.late:
        return True
    return any(
        binder.seq == position + 1
        and (post in binder.requests or (not binder.hung and binder.stage in {"asks", "works"}))
        for binder in state.binders
    )


def decide(state: State, rules: Rules, index: int) -> tuple[Record | None, str]:
    """The next record that the leading planner would append: for gangs bound in part first."""
    planner = state.planners[index]
    gangs = range(len(rules.gangs))
    for gang in sorted(gangs, key=lambda gang: not _is_bound(planner, rules.of_gang(gang))):
        record, why = _decide_for(state, rules, planner, gang)
        if record is not None:
            return record, why
    return None, ""


def _is_bound(planner: Planner, own: range) -> bool:
    return any(planner.view[i].node >= 0 for i in own)


def _decide_for(
    state: State, rules: Rules, planner: Planner, gang: int
) -> tuple[Record | None, str]:
    own = rules.of_gang(gang) if rules.gangs_are_apart else range(rules.members)
    log = state.log[: planner.read]
    memory = remember(state, rules, planner, own)
    if memory.unresolved:
        return None, ""
    notes = [
        one.kind
        for one in log
        if isinstance(one, Mark) and one.kind != "Epoch" and one.gang == gang
    ]
    bound = [i for i in own if planner.view[i].node >= 0]
    if "ReleaseOpened" in notes[-1:]:
        return _release(state, planner, memory, bound, gang)
    if "Started" in notes:
        return _plan(state, rules, planner, memory, own)
    if len(bound) == len(own):
        return Mark("", "Started", gang), f"gang {gang} has started"
    attempts = sum(isinstance(one, Bind) and is_about(one, own) for one in log)
    cannot_finish = memory.refused or (attempts >= ATTEMPTS_MAX and not memory.assumed)
    if cannot_finish and (bound or memory.assumed):
        return Mark("", "ReleaseOpened", gang), f"opens a release of gang {gang}"
    if attempts >= ATTEMPTS_MAX:
        return None, ""
    if bound and _is_without_room(rules, memory, planner, own):
        return Mark("", "ReleaseOpened", gang), f"the repair of gang {gang} has a deadline"
    return _plan(state, rules, planner, memory, own)


def _is_without_room(rules: Rules, memory: Memory, planner: Planner, own: range) -> bool:
    """Whether fewer nodes are free than members wait, whatever comes of requests in flight."""
    waiting = [i for i in own if i not in memory.taken]
    lost = any(planner.view[i].node == ABSENT for i in own)
    return len(waiting) > rules.nodes - len(memory.occupied) and not (memory.late or lost)


def _release(
    state: State, planner: Planner, memory: Memory, bound: list[int], gang: int
) -> tuple[Record | None, str]:
    """Delete what is bound, as often as it takes; end when nothing is left."""
    if memory.unanswered:
        return None, ""
    view, going = planner.view, set()
    for position, record in enumerate(state.log[: planner.read]):
        if isinstance(record, Remove):
            published = state.outcomes[position]
            assert published is not None
            going |= {
                victim
                for victim, result in zip(record.victims, published.results, strict=True)
                if result == "evicted"
            }
    victims = tuple((i, view[i].gen) for i in bound if (i, view[i].gen) not in going)
    if victims:
        return Remove("", planner.epoch, victims), f"releases {victims}"
    if bound or memory.late or memory.assumed:
        return None, ""
    return Mark("", "ReleaseClosed", gang), f"closes the release of gang {gang}"


def _plan(
    state: State, rules: Rules, planner: Planner, memory: Memory, own: range
) -> tuple[Record | None, str]:
    """Give every member that waits a node, or none: two planners prefer different nodes."""
    view = planner.view
    waiting = [i for i in own if i not in memory.taken]
    if not waiting or any(view[i].node == ABSENT for i in own):
        return None, ""
    free = [node for node in range(rules.nodes) if node not in memory.occupied]
    if len(free) < len(waiting) + _held(state, rules, planner, memory, own):
        return None, ""
    if planner.epoch > 1:
        free.reverse()
    members: list[tuple[int, int, int]] = []
    for member in waiting:
        good = [node for node in free if (member, node) not in memory.bad] or free
        if not good:
            return None, ""
        node = good[0]
        free.remove(node)
        members.append((member, view[member].gen, node))
    log = state.log[: planner.read]
    again = any(isinstance(one, Bind) and is_about(one, own) for one in log)
    preflight = again and len(members) > 1 and rules.preflighted_again
    return Bind("", planner.epoch, tuple(members), preflight), f"binds {members}"


def _held(state: State, rules: Rules, planner: Planner, memory: Memory, own: range) -> int:
    """Nodes that are held for lost members of other gangs that have started."""
    if not rules.lost_are_held:
        return 0
    started = {
        one.gang
        for one in state.log[: planner.read]
        if isinstance(one, Mark) and one.kind == "Started"
    }
    others = [i for gang in started for i in rules.of_gang(gang) if i not in own]
    # A member that is bound, or on its way to a node, has a node already.
    return sum(planner.view[i].node == ABSENT or i not in memory.taken for i in others)
