"""Restores state from DECISIONS, record by record or from checkpoints, and writes checkpoints."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar, assert_never

import msgspec

from services.gang_planner.core.allocation import min_resources
from services.gang_planner.core.cycle_context import RENAMED, CycleContext
from services.gang_planner.core.lifecycle.backoff import MEMORY_MS
from services.gang_planner.core.preemption import tracking
from services.gang_planner.core.state import gang_runs, in_flight
from services.gang_planner.core.state.gang_history import NOT_IN_LOG, History
from services.gang_planner.core.state.gang_states import GangEvent, GangState
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.past_use import by_name
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.preemptions import Preemption
from services.gang_planner.core.transitions import apply_event, restore_state
from shared.contracts.cluster import StreamOpened
from shared.contracts.decisions import (
    AccountUse,
    Act,
    Checkpoint,
    DecisionRecord,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
    OpenDecision,
    OpenGang,
    OpenOutcome,
    UseCharged,
)
from shared.contracts.identity import nameless_gang_id
from shared.contracts.subjects import PAGE_BYTES_MAX

if TYPE_CHECKING:
    from services.gang_planner.core.state.reservations import OpenAct, OpenEviction

_Entry = TypeVar("_Entry")
_Item: TypeAlias = OpenDecision | OpenGang | AccountUse

_encode: Final = msgspec.msgpack.Encoder().encode
#: The size of a page without the items of its two lists.
_PAGE_OVERHEAD_BYTES: Final = 512


def apply_record(state: State, seq: int, record: DecisionRecord) -> None:
    """Apply the record with this sequence number; records applied before are ignored."""
    if seq <= state.view.decisions_seq:
        return
    state.view.decisions_seq = seq
    match record:
        case GangDecision() | EvictionDecision():
            _give_id(state.gangs, record.gang_id, record.gang)
            _recall_act(state, seq, record)
        case GangStarted():
            history = state.gangs.history(record.gang_id)
            restore_state(history, started=True)
            history.failures = 0
            history.attempt = max(history.attempt, record.attempt)
            history.known_as = record.gang_id
        case NoteOpened():
            _open(state, record)
        case NoteClosed():
            _close(state, record)
        case EpochOpened():
            state.epoch = record.epoch
            state.gangs.derive_ids(namespaced=record.namespaced_ids)
            state.holds.recall_epoch(state, record.snapshot_seq)
            return
        case UseCharged():
            state.past_use.apply(record)
        case Checkpoint() | StreamOpened():
            return
        case _:
            assert_never(record)
    if record.cycle is not None:
        state.holds.recall_cycle(state, record.cycle.cluster_seq)
        state.in_flight_max = record.cycle.in_flight_max
        state.recorded_ms = record.cycle.now_ms
        state.view.consumed_seq = max(state.view.consumed_seq, record.cycle.outcomes_seq)
    note_record(state.gangs, seq, record)
    _touch(state.gangs, record.gang_id)


def _touch(gangs: GangTable, gang_id: str) -> None:
    gang = gangs.find(gang_id)
    if gang is not None:
        gangs.touch(gang)


def note_record(gangs: GangTable, seq: int, record: Act | Note) -> None:
    """Store a record's sequence in its gang's history, unless it ends a note or is a hold's."""
    if isinstance(record, NoteClosed | UseCharged) or (
        isinstance(record, NoteOpened) and record.kind == "hold"
    ):
        return
    gangs.history(record.gang_id).noted_at = seq


def _give_id(gangs: GangTable, gang_id: str, full_name: str) -> None:
    """Let the gang with this name have the id; "": the record names none."""
    if full_name:
        gangs.give_id(gang_id, full_name.partition("/")[0])


def _recall_act(state: State, seq: int, record: Act) -> None:
    if isinstance(record, GangDecision):
        if record.fills:
            state.holds.recall_filled(state, record.fills)
        if record.preemption in state.preemptions.logged:
            tracking.taken_over(state, state.preemptions.logged[record.preemption])
        history = state.gangs.history(record.gang_id)
        if not record.again:
            history.count_decided(len(record.bindings))
        _begin_run(state.gangs, history, record)
        if history.dormant and record.attempt > history.attempt:
            apply_event(history, GangEvent.MEMBERS_DECIDED, record.gang)
        in_flight.recall(state, seq, record)
        min_resources.recall(state, record)
        if record.domain:
            state.gangs.history(record.gang_id).home = record.domain
        return
    history = state.gangs.history(record.gang_id)
    history.attempt = max(history.attempt, record.attempt)
    history.full_name, history.scope = record.gang, record.scope
    history.first_seen_ms = history.first_seen_ms or record.first_seen_ms
    in_flight.recall_eviction(state, seq, record)


def _begin_run(gangs: GangTable, history: History, record: GangDecision) -> None:
    """Let a gang that had started be dormant if the decision begins its next run. No cycle of this
    planner has assessed the gang.
    """
    gang = gangs.find(record.gang_id)
    if gang is None:
        return
    if history.state is GangState.RUNNING and gang_runs.begins_with(gang, record):
        apply_event(history, GangEvent.ALL_LOST, record.gang)
    history.decided_cluster_seq = max(history.decided_cluster_seq, record.cycle.cluster_seq)


def restore(state: State, pages: Sequence[Checkpoint]) -> None:
    """Restore the open decisions, notes and histories of a checkpoint, as of its `up_to`."""
    if pages:
        state.view.decisions_seq = max(state.view.decisions_seq, pages[0].up_to)
        state.view.outcomes_seq = max(state.view.outcomes_seq, pages[0].outcomes_seq)
        state.view.consumed_seq = max(state.view.consumed_seq, pages[0].consumed_seq)
    for page in pages:
        if not page.page:
            state.past_runs.load(page.past_runs)
        state.epoch = max(state.epoch, page.epoch)
        state.gangs.derive_ids(namespaced=page.namespaced_ids)
        for gang in page.gangs:
            _restore_gang(state, gang, page.up_to)
        for decision in page.decisions:
            _give_id(state.gangs, decision.decision.gang_id, decision.decision.gang)
            if isinstance(decision.decision, GangDecision):
                in_flight.recall(state, decision.seq, decision.decision)
            else:
                in_flight.recall_eviction(state, decision.seq, decision.decision)
                if decision.ended:
                    state.preemptions.logged[decision.seq].ended = True
            if decision.outcome is not None:
                in_flight.apply_outcome(state, decision.outcome_seq, decision.outcome)
        state.past_use.recall(page.uses)
        for open_outcome in page.outcomes:
            in_flight.apply_outcome(state, open_outcome.outcome_seq, open_outcome.outcome)


def _restore_gang(state: State, gang: OpenGang, up_to: int) -> None:
    """Restore a gang's state, or the part of it that this entry has."""
    _give_id(state.gangs, gang.gang_id, gang.gang)
    history = state.gangs.history(gang.gang_id)
    history.attempt = max(history.attempt, gang.attempt)
    history.failures = gang.failures
    history.bad.update({(uid, node): until_ms for uid, node, until_ms in gang.bad})
    history.failed_on.update(dict.fromkeys(gang.failed_on))
    history.first_seen_ms = gang.first_seen_ms
    history.known_as = gang.gang_id
    history.full_name, history.scope = gang.gang or None, gang.scope
    history.noted_at = up_to
    history.home = gang.home or None
    history.holds_forgone = gang.holds_forgone
    history.preemptions_failed = gang.preemptions_failed
    history.preempt_after_ms = gang.preempt_after_ms
    history.preemption_ended = gang.preemption_ended or None
    history.spared.update(gang.spared)
    for note in gang.notes:
        if note.kind == "hold":
            state.holds.recall(state, note)
        else:
            history.notes.put(note)
    restore_state(history, started=gang.started)


def checkpoint(state: State, outcomes_seq: int, at_ms: int) -> list[Checkpoint]:
    """All open decisions, notes and histories, in pages of at most 512 KiB. A larger decision has a
    page of its own, and so has its outcome, unless both fit into one.
    """
    if state.view.epoch and not state.unresolved:
        # The cluster state is complete: objects missing in it will not come back under their UID.
        # The next cycle closes the open notes of missing gangs.
        remembered = state.gangs.remembered
        for gang_id in [
            gang_id for gang_id, history in remembered.items() if not history.notes.any_open
        ]:
            del remembered[gang_id]
    pages, past_runs = [_Page([], [], [], [])], state.past_runs.listed()
    size = _PAGE_OVERHEAD_BYTES + len(_encode(past_runs))
    for open_item, length in _sized(_open_items(state)):
        if size + length > PAGE_BYTES_MAX and size > _PAGE_OVERHEAD_BYTES:
            pages.append(_Page([], [], [], []))
            size = _PAGE_OVERHEAD_BYTES
        size += length
        match open_item:
            case OpenDecision():
                pages[-1].decisions.append(open_item)
            case OpenGang():
                pages[-1].gangs.append(open_item)
            case OpenOutcome():
                pages[-1].outcomes.append(open_item)
            case AccountUse():
                pages[-1].uses.append(open_item)
            case _:
                assert_never(open_item)
    return [
        Checkpoint(
            epoch=state.epoch,
            up_to=state.view.decisions_seq,
            outcomes_seq=outcomes_seq,
            consumed_seq=state.view.consumed_seq,
            at_ms=at_ms,
            namespaced_ids=state.gangs.namespaced_ids,
            page=number,
            pages=len(pages),
            decisions=tuple(page.decisions),
            gangs=tuple(page.gangs),
            outcomes=tuple(page.outcomes),
            past_runs=() if number else past_runs,
            uses=tuple(page.uses),
        )
        for number, page in enumerate(pages)
    ]


class _Page(NamedTuple):
    """What one page of a checkpoint lists."""

    decisions: list[OpenDecision]
    gangs: list[OpenGang]
    outcomes: list[OpenOutcome]
    uses: list[AccountUse]


def _sized(
    items: Iterable[_Item],
) -> Iterator[tuple[_Item | OpenOutcome, int]]:
    """The items, those that are too large for a page in parts, each with its bytes."""
    for open_item in items:
        length = len(_encode(open_item))
        if length <= PAGE_BYTES_MAX - _PAGE_OVERHEAD_BYTES:
            yield open_item, length
        elif isinstance(open_item, OpenGang):
            yield from _parts(open_item, length)
        elif isinstance(open_item, AccountUse) or open_item.outcome is None:
            yield open_item, length
        else:
            apart = OpenOutcome(outcome=open_item.outcome, outcome_seq=open_item.outcome_seq)
            alone = msgspec.structs.replace(open_item, outcome=None, outcome_seq=0)
            yield alone, len(_encode(alone))
            yield apart, len(_encode(apart))


def _parts(gang: OpenGang, length: int) -> Iterator[tuple[OpenGang, int]]:
    """The gang, its lists halved until each part fits into a page: thousands of its members may be
    lost at once, and refused by nodes.
    """
    lists = gang.bad, gang.failed_on, gang.spared, gang.notes
    if length <= PAGE_BYTES_MAX - _PAGE_OVERHEAD_BYTES or max(map(len, lists)) < 2:
        yield gang, length
        return
    for half in (0, 1):
        part = msgspec.structs.replace(
            gang,
            bad=_half(gang.bad, half),
            failed_on=_half(gang.failed_on, half),
            spared=_half(gang.spared, half),
            notes=_half(gang.notes, half),
        )
        yield from _parts(part, len(_encode(part)))


def _half(entries: tuple[_Entry, ...], half: int) -> tuple[_Entry, ...]:
    """The first half (0) of the entries, or the second one (1)."""
    middle = (len(entries) + 1) // 2
    return entries[middle:] if half else entries[:middle]


def forget_gone(work: CycleContext) -> None:
    """Close the open notes of gangs that are not in the cluster state. If a gang's group was
    recreated under its name, the new gang takes over the history instead.
    """
    state = work.state
    for gang_id, history in list(state.gangs.remembered.items()):
        if history.notes.any_open and _made_again(state.gangs, history):
            del state.gangs.remembered[gang_id]
            continue
        for note in list(history.notes):
            if note.kind == "backoff" and work.now_ms < note.until_ms + MEMORY_MS:
                # A controller may recreate its pods, which are pre-flighted then.
                continue
            history.notes.close(note.kind)
            work.add_closed(gang_id, note.kind, "Gone")
            if note.kind == "release":
                in_flight.forget_evictions(state.gangs, state.evictions, gang_id)
            restore_state(history, started=history.started)


def _made_again(gangs: GangTable, history: History) -> bool:
    """Let a gang of the same name that is not in the log take over the history; whether one did."""
    if history.full_name is None:
        return False
    namespace, _, name = history.full_name.partition("/")
    gang = gangs.gangs.get((history.scope, namespace, name))
    if gang is None or gang.history.noted_at != NOT_IN_LOG or gang.history.attempt:
        return False
    history.first_seen_ms = gang.history.first_seen_ms
    gang.history = history
    gangs.touch(gang)
    return True


def _open(state: State, note: NoteOpened) -> None:
    if note.kind == "hold":
        state.holds.recall(state, note)
        return
    history = state.gangs.history(note.gang_id)
    before = getattr(history.notes, note.kind)
    if before is not None and before.gang_id != note.gang_id:
        # It is open under the gang's former id until the log ends it there. A planner that was
        # killed between the two records leaves that to the next one, see `forget_gone`.
        state.gangs.history(before.gang_id).notes.put(before)
    history.notes.put(note)
    restore_state(history, started=history.started)
    history.attempt = max(history.attempt, note.attempt)
    history.known_as = note.gang_id
    if note.kind == "backoff":
        history.failures += 1


def _close(state: State, note: NoteClosed) -> None:
    if note.kind == "hold":
        state.holds.recall_end(state, note.gang_id, note.pod_uids, note.reason)
        return
    if note.kind == "preemption":
        tracking.recall(state, note)
        return
    gang = state.gangs.find(note.gang_id)
    history = gang.history if gang is not None else state.gangs.remembered.get(note.gang_id)
    if history is None:
        return
    history.notes.close(note.kind)
    if note.reason == RENAMED:
        _name_by_key(state.gangs, history)
    released = note.kind == "release" and note.reason == "Released"
    restore_state(history, started=history.started and not released)
    if note.kind == "release" and note.reason != RENAMED:
        in_flight.forget_evictions(state.gangs, state.evictions, note.gang_id)
    if gang is not None:
        state.gangs.drop_if_empty(gang)


def _name_by_key(gangs: GangTable, history: History) -> None:
    """Name the history under the id that a gang has without an object: the note that was closed is
    open under that id if the gang has lost its object, and no decision there says whose it is.
    """
    if history.full_name is None:
        return
    namespace, _, name = history.full_name.partition("/")
    renamed = gangs.history(nameless_gang_id(history.scope, namespace, name))
    if renamed.full_name is None:
        renamed.full_name, renamed.scope = history.full_name, history.scope


def _open_items(state: State) -> list[_Item]:
    items: list[_Item] = []
    acts: list[OpenAct | OpenEviction | Preemption] = [
        *state.open.values(),
        *state.evictions.values(),
        *state.preemptions.logged.values(),
    ]
    items.extend(
        OpenDecision(
            seq=act.seq,
            decision=act.act,
            outcome=act.outcome,
            outcome_seq=act.outcome_seq,
            ended=isinstance(act, Preemption) and act.ended,
        )
        for act in sorted(acts, key=lambda act: act.seq)
    )
    holds = state.holds.notes_of()
    known = {gang_id: gang.history for gang_id, gang in state.gangs.by_id.items()}
    for gang_id, history in sorted((known | state.gangs.remembered).items()):
        held = holds.pop(gang_id, [])
        if held or gang_id in state.gangs.remembered or _worth_keeping(history):
            items.append(_open_gang(gang_id, history, held))
    items.extend(_open_gang(gang_id, History(), held) for gang_id, held in sorted(holds.items()))
    uses = state.past_use.logged()
    return items + sorted(uses, key=by_name)


def _worth_keeping(history: History) -> bool:
    return bool(
        history.attempt or history.started or history.notes.any_open or history.preemptions_failed
    )


def _open_gang(gang_id: str, history: History, holds: Iterable[NoteOpened]) -> OpenGang:
    return OpenGang(
        gang_id=gang_id,
        attempt=history.attempt,
        started=history.has_started,
        failures=history.failures,
        bad=tuple(sorted((uid, node, until) for (uid, node), until in history.bad.items())),
        failed_on=tuple(history.failed_on),
        first_seen_ms=history.first_seen_ms,
        gang=history.full_name or "",
        scope=history.scope,
        home=history.home or "",
        holds_forgone=history.holds_forgone,
        preemptions_failed=history.preemptions_failed,
        preempt_after_ms=history.preempt_after_ms,
        preemption_ended=history.preemption_ended or "",
        spared=tuple(sorted(history.spared.items())),
        notes=(*history.notes, *holds),
    )
