"""What binders, the consumer and the API server can do. Binders are the product's own machines.

A binder's requests are in flight until the API server takes them, in any order. What a binder that
was killed, or gave up waiting, has sent may arrive at any time later, or never.
"""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import (
    Command,
    Delete,
    Evict,
    Finish,
    Forget,
    Limits,
    LookUp,
    Post,
    Prepare,
    Read,
    Undo,
)
from services.binder.core.commands import Mark as MarkVictim
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from services.binder.core.removal import Removal
from services.binder.state import EpochsSeen
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, Victim
from shared.contracts.outcomes import Outcome
from tests.model.interning import Interned
from tests.model.states import (
    ABSENT,
    NO_BINDER,
    SPENT,
    WAITS,
    Bind,
    Binder,
    Mark,
    Pod,
    Published,
    Remove,
    Request,
    Rules,
    State,
    Step,
    after,
    may,
    put,
)

machines = Interned()
_NAMES: Final = "abcd"
_CYCLE: Final = Cycle(cluster_seq=0, outcomes_seq=0, now_ms=0, configuration="")
#: One retry is every retry: what counts is that there is more than one request for a member.
_LIMITS: Final = Limits(posts_max=2, reads_max=2, deliveries_max=2)
_NO_ANSWER: Final = Answer(0)
_REFUSED: Final = Answer(403, "Forbidden", "refused by policy")


def binder_steps(state: State, rules: Rules) -> Iterator[Step]:
    """Everything that can happen to decisions on their way and to requests, in this state."""
    yield from _deliver(state)
    for index, binder in enumerate(state.binders):
        if binder.stage == "idle":
            continue
        yield from _lose(state, rules, index)
        if binder.hung:
            yield from _wake(state, rules, index)
        elif binder.stage != "works":
            yield _settle(state, rules, index)
        for request in binder.requests:
            yield from _reach(state, rules, index, request)
    yield from _redeliver(state, rules)
    for seq, request in state.late:
        kind, answer, pods = _served(state, rules, seq, request)
        left = state._replace(late=state.late - {(seq, request)}, pods=pods)
        yield Step(f"late: {request} of {seq}: {kind} {_status(answer)}", False, left)


# ---------- the consumer


def _deliver(state: State) -> Iterator[Step]:
    """A decision that is ready goes to a binder that has nothing to do."""
    idle = {one: i for i, one in enumerate(state.binders) if one.stage == "idle"}
    for position, delivery in enumerate(state.deliveries):
        if delivery is None or delivery.state != "ready":
            continue
        for binder, index in idle.items():
            count = delivery.times + 1
            out = delivery._replace(times=count, state="out")
            given = state._replace(deliveries=put(state.deliveries, position, out))
            label = f"binder {index} is given {position + 1}, delivery {count}"
            yield Step(label, False, _begin(given, index, binder, position + 1, count))


def _begin(state: State, index: int, binder: Binder, seq: int, delivered: int) -> State:
    record = state.log[seq - 1]
    assert not isinstance(record, Mark)
    seen = EpochsSeen()
    for epoch in sorted(binder.epochs):
        seen.check(epoch, epoch + 1)
    stale = seen.check(record.epoch, seq)
    epochs = binder.epochs if stale else binder.epochs | {record.epoch}
    held = binder._replace(seq=seq, delivered=delivered, epochs=epochs)
    if stale:
        size = len(record.members if isinstance(record, Bind) else record.victims)
        published = Published(delivered, ("skipped",) * size, (False,) * size)
        return state._replace(
            binders=put(state.binders, index, held._replace(stage="tells", published=published))
        )
    number, commands = machines.step(_machine(record, seq, delivered), "start", 0)
    return _do(state, index, held._replace(stage="works", machine=number), commands)


def _redeliver(state: State, rules: Rules) -> Iterator[Step]:
    """No binder has given a sign of life for the ack wait, or none has arrived."""
    for position, delivery in enumerate(state.deliveries):
        if delivery is None or delivery.state != "out":
            continue
        again = state._replace(
            deliveries=put(state.deliveries, position, delivery._replace(state="ready"))
        )
        holders = [
            one
            for one in state.binders
            if one.seq == position + 1 and one.delivered == delivery.times
        ]
        label = f"the ack wait of {position + 1} passes"
        if not holders or holders[0].hung:
            yield Step(label, False, again)
        elif may(state, rules, "cut-off"):
            yield Step(
                f"{label}, its binder is cut off",
                True,
                again._replace(faults=after(state, rules, "cut-off")),
            )


# ---------- one binder


def _do(state: State, index: int, binder: Binder, commands: tuple[Command, ...]) -> State:
    """Send what a machine asks for."""
    requests = set(binder.requests)
    for command in commands:
        match command:
            case Post():
                requests.add(Request("dry" if command.dry_run else "post", command.index))
            case Read():
                requests.add(Request("read", command.index))
            case Delete():
                requests.add(Request("delete", command.index))
            case MarkVictim():
                # The condition decides nothing here: it is written, and the deletion follows.
                number, more = machines.step(
                    binder.machine, "answered", command.index, Answer(200), 0
                )
                (deletion,) = more
                assert isinstance(deletion, Delete)
                binder = binder._replace(machine=number)
                requests.add(Request("delete", deletion.index))
            case LookUp():
                binder = binder._replace(stage="asks")
            case Evict() | Prepare() | Undo():
                raise AssertionError("the modelled gang preempts no pod and has no claims")
            case Finish():
                published = _published_outcome(state, binder, command.outcome)
                binder = binder._replace(stage="tells", published=published, machine=-1)
            case Forget():
                binder = binder._replace(stage="acks", machine=-1)
    return state._replace(
        binders=put(state.binders, index, binder._replace(requests=frozenset(requests)))
    )


def _settle(state: State, rules: Rules, index: int) -> Step:
    """Ask for the outcome, publish it, or acknowledge: one message to the bus."""
    binder = state.binders[index]
    position = binder.seq - 1
    stored, delivery = state.outcomes[position], state.deliveries[position]
    assert delivery is not None
    if binder.stage == "acks":
        acked = state._replace(
            deliveries=put(state.deliveries, position, delivery._replace(state="done")),
            binders=put(state.binders, index, _idle(binder)),
        )
        return Step(f"binder {index} acknowledges {binder.seq}", False, acked)
    if binder.stage == "asks":
        label = f"binder {index} looks for the outcome of {binder.seq}"
        exists = stored is not None
        number, commands = machines.step(binder.machine, "looked_up", outcome_exists=exists)
        if not exists and rules.redelivery_claims:
            if delivery.claimed > binder.delivered:
                return Step(f"{label}: claimed", False, _abandon(state, index))
            claimed = delivery._replace(claimed=binder.delivered)
            state = state._replace(deliveries=put(state.deliveries, position, claimed))
        works = binder._replace(stage="works", machine=number)
        return Step(label, False, _do(state, index, works, commands))
    assert binder.published is not None
    label = f"binder {index} publishes {binder.published.results} of {binder.seq}"
    if delivery.claimed > (binder.delivered if binder.delivered > 1 else 0):
        return Step(f"{label}: claimed", False, _abandon(state, index))
    # An acknowledgement is a step of its own only where something may come between.
    alone = state.faults == SPENT or not rules.faults_max
    left = _idle(binder) if alone else binder._replace(stage="acks", published=None)
    published = state._replace(binders=put(state.binders, index, left))
    if alone:
        done = delivery._replace(state="done")
        published = published._replace(deliveries=put(state.deliveries, position, done))
    if stored is None or not rules.first_outcome_wins:
        published = published._replace(outcomes=put(state.outcomes, position, binder.published))
    return Step(label, False, published)


def _lose(state: State, rules: Rules, index: int) -> Iterator[Step]:
    """A binder with a decision in its hands is killed, or stops for a while."""
    binder = state.binders[index]
    for kind in ("crash-binder", "crash-binder-again"):
        if not may(state, rules, kind):
            continue
        faults = after(state, rules, kind)
        for late in _subsets(one for one in binder.requests if one.kind in {"post", "delete"}):
            left = frozenset((binder.seq, one) for one in late)
            yield Step(
                f"binder {index} is killed, {sorted(late)} are in flight",
                True,
                state._replace(
                    binders=put(state.binders, index, NO_BINDER),
                    late=state.late | left,
                    faults=faults,
                ),
            )
    if not binder.hung and may(state, rules, "hang"):
        hung = state._replace(
            binders=put(state.binders, index, binder._replace(hung=True)),
            faults=after(state, rules, "hang"),
        )
        yield Step(f"binder {index} hangs", True, hung)


def _wake(state: State, rules: Rules, index: int) -> Iterator[Step]:
    """It continues with the messages that came, if no other binder can have its decision."""
    binder = state.binders[index]
    delivery = state.deliveries[binder.seq - 1]
    assert delivery is not None
    ours = delivery.state == "out" and delivery.times == binder.delivered
    if not ours and rules.sleeper_abandons:
        yield Step(f"binder {index} wakes up and lets go", False, _abandon(state, index))
        return
    awake = state._replace(
        binders=put(state.binders, index, binder._replace(hung=False, mail=frozenset()))
    )
    for request, status in sorted(binder.mail, key=str):
        awake = _hand(awake, index, request, _parsed(request, status))
    yield Step(f"binder {index} wakes up and goes on", False, awake)


def _abandon(state: State, index: int) -> State:
    binder = state.binders[index]
    left = frozenset((binder.seq, one) for one in binder.requests if one.kind in {"post", "delete"})
    return state._replace(binders=put(state.binders, index, _idle(binder)), late=state.late | left)


def _idle(binder: Binder) -> Binder:
    return NO_BINDER._replace(epochs=binder.epochs)


# ---------- the API server


def _reach(state: State, rules: Rules, index: int, request: Request) -> Iterator[Step]:
    """A request is carried out and answered; or not answered, whatever becomes of it."""
    seq = state.binders[index].seq
    kind, answer, pods = _served(state, rules, seq, request)
    served = state._replace(pods=pods)
    label = f"binder {index}: {request} of {seq}: {kind} {_status(answer)}"
    yield Step(label, False, _hand(served, index, request, answer))
    if request.kind == "post" and may(state, rules, "refused-once"):
        odd = state._replace(faults=after(state, rules, "refused-once"))
        yield Step(
            f"binder {index}: {request} of {seq} is refused this once",
            True,
            _hand(odd, index, request, _REFUSED),
        )
    if request.kind != "read" and may(state, rules, "unanswered"):
        lost = state._replace(faults=after(state, rules, "unanswered"))
        late = lost._replace(late=lost.late | {(seq, request)})
        for each, what in ((lost, "is lost"), (late, "is late")):
            if request.kind != "dry" or each is lost:
                yield Step(
                    f"binder {index}: {request} of {seq} {what}",
                    True,
                    _hand(each, index, request, _NO_ANSWER),
                )


def _hand(state: State, index: int, request: Request, answer: Answer | PodView | None) -> State:
    """Give a binder its answer; one that hangs finds it when it wakes up."""
    binder = state.binders[index]
    binder = binder._replace(requests=binder.requests - {request})
    if binder.hung:
        mail = binder.mail | {(request, _status(answer))}
        return state._replace(binders=put(state.binders, index, binder._replace(mail=mail)))
    method = "read_back" if request.kind == "read" else "answered"
    number, commands = machines.step(binder.machine, method, request.at, answer, 0)
    return _do(state, index, binder._replace(machine=number), commands)


def _served(
    state: State, rules: Rules, seq: int, request: Request
) -> tuple[str, Answer | PodView | None, tuple[Pod, ...]]:
    """What the API server does with a request, what it says, and the pods then."""
    record = state.log[seq - 1]
    if isinstance(record, Bind):
        member, gen, node = record.members[request.at]
    else:
        assert isinstance(record, Remove)
        (member, gen), node = record.victims[request.at], WAITS
    pod = state.pods[member]
    if request.kind == "read":
        where = f"n{pod.node}" if pod.node >= 0 else ""
        view = None if pod.node == ABSENT else PodView(_uid(member, pod.gen), where)
        return "saw", view, state.pods
    if pod.node == ABSENT:
        return "none", Answer(404), state.pods
    if pod.gen != gen and rules.uid_is_precondition:
        return "another", Answer(409), state.pods
    if request.kind == "delete":
        return "deleted", Answer(200), put(state.pods, member, Pod(pod.gen, ABSENT))
    if pod.node >= 0:
        return "conflict", Answer(409), state.pods
    if member in rules.poisoned:
        return "refused", _REFUSED, state.pods
    if request.kind == "dry":
        return "passed", Answer(201), state.pods
    return "bound", Answer(201), put(state.pods, member, Pod(pod.gen, node))


def without_effect(state: State, rules: Rules) -> frozenset[tuple[int, Request]]:
    """Late requests that can change nothing any more: their pod is bound, or deleted."""
    if not rules.uid_is_precondition:
        return frozenset()
    idle = set()
    for seq, request in state.late:
        record = state.log[seq - 1]
        assert not isinstance(record, Mark)
        if isinstance(record, Bind):
            member, gen, _ = record.members[request.at]
        else:
            member, gen = record.victims[request.at]
        pod = state.pods[member]
        if pod.gen > gen or pod.node == ABSENT or (pod.node >= 0 and request.kind == "post"):
            idle.add((seq, request))
    return frozenset(idle)


def _status(answer: Answer | PodView | None) -> Any:
    return answer.status if isinstance(answer, Answer) else answer


def _parsed(request: Request, status: Any) -> Answer | PodView | None:
    return _REFUSED if status == 403 else Answer(status) if isinstance(status, int) else status


# ---------- between the model and the product


def _uid(member: int, gen: int) -> str:
    return f"{_NAMES[member]}{gen}"


@cache
def _machine(record: Bind | Remove, seq: int, delivered: int) -> int:
    """The product's machine for one delivery of a decision."""
    sender = Sender("binder", seq, delivered)
    if isinstance(record, Bind):
        decision = GangDecision(
            gang_id="g",
            gang="ns/g",
            dialect="volcano",
            epoch=record.epoch,
            attempt=1,
            bindings=tuple(
                Binding(uid=_uid(m, gen), namespace="ns", name=_NAMES[m], node=f"n{node}")
                for m, gen, node in record.members
            ),
            quorum=len(record.members),
            preflight=record.preflight,
            trace_id="",
            first_seen_ms=0,
            cycle=_CYCLE,
        )
        return machines.number(Machine(decision, sender, _LIMITS))
    eviction = EvictionDecision(
        gang_id="g",
        gang="ns/g",
        epoch=record.epoch,
        attempt=1,
        victims=tuple(
            Victim(uid=_uid(m, gen), namespace="ns", name=_NAMES[m]) for m, gen in record.victims
        ),
        via="delete",
        reason="BindingRefused",
        trace_id="",
        cycle=_CYCLE,
    )
    return machines.number(Removal(eviction, sender, _LIMITS))


def _published_outcome(state: State, binder: Binder, outcome: Outcome) -> Published:
    """An outcome in the model's words."""
    record = state.log[binder.seq - 1]
    found = {one.uid: one for one in outcome.members}
    if isinstance(record, Bind):
        uids = [_uid(member, gen) for member, gen, _ in record.members]
        plain = "bound"
    else:
        assert isinstance(record, Remove)
        uids, plain = [_uid(*victim) for victim in record.victims], "evicted"
    results = tuple(found[uid].result if uid in found else plain for uid in uids)
    late = tuple(uid in found and getattr(found[uid], "late", False) for uid in uids)
    return Published(outcome.delivered, results, late, outcome.reason == "PreflightFailed")


def _subsets(items: Iterator[Request]) -> Iterator[frozenset[Request]]:
    every = sorted(items)
    for size in range(len(every) + 1):
        for chosen in itertools.combinations(every, size):
            yield frozenset(chosen)
