"""What DECISIONS remembers, read back: records in order, checkpoints in pages."""

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from services.gang_planner.core import inflight
from services.gang_planner.core.gangs import History
from services.gang_planner.state import State
from shared.contracts.cluster import StreamOpened
from shared.contracts.decisions import (
    Checkpoint,
    DecisionRecord,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
    OpenDecision,
    OpenGang,
)
from shared.contracts.subjects import PAGE_BYTES_MAX

_encode: Final = msgspec.msgpack.Encoder().encode
#: Field names and numbers around the two lists of a page.
_PAGE_OVERHEAD_BYTES: Final = 512


def apply_record(state: State, seq: int, record: DecisionRecord) -> None:
    """Take one record of the log into account; what was applied already is ignored."""
    if seq <= state.view.decisions_seq:
        return
    state.view.decisions_seq = seq
    match record:
        case GangDecision():
            inflight.recall(state, seq, record)
        case EvictionDecision():
            history = state.gangs.history(record.gang_id)
            history.attempt = max(history.attempt, record.attempt)
        case GangStarted():
            history = state.gangs.history(record.gang_id)
            history.started = True
            history.attempt = max(history.attempt, record.attempt)
        case NoteOpened() | NoteClosed():
            _take_note(state, record)
        case EpochOpened():
            state.epoch = record.epoch
        case Checkpoint() | StreamOpened():
            pass
        case _:
            assert_never(record)
    _touch(state, record)


def restore(state: State, pages: Sequence[Checkpoint]) -> None:
    """Begin with a checkpoint: what was open as of its `up_to`."""
    for page in pages:
        state.epoch = max(state.epoch, page.epoch)
        for gang in page.gangs:
            history = state.gangs.history(gang.gang_id)
            history.attempt = max(history.attempt, gang.attempt)
            history.started = gang.started
            history.first_seen_ms = gang.first_seen_ms
            history.backoff = next((one for one in gang.notes if one.kind == "backoff"), None)
        for decision in page.decisions:
            if isinstance(decision.decision, GangDecision):
                inflight.recall(state, decision.seq, decision.decision)
    if pages:
        state.view.decisions_seq = max(state.view.decisions_seq, pages[0].up_to)
        state.view.outcomes_seq = max(state.view.outcomes_seq, pages[0].outcomes_seq)


def checkpoint(state: State, outcomes_seq: int) -> list[Checkpoint]:
    """Everything that is open, in pages of at most 512 KiB; a single larger decision has a page of
    its own.
    """
    if state.view.epoch and not state.unresolved:
        # The picture is whole: what it does not show will not come back under the same UID.
        state.gangs.remembered.clear()
    pages: list[tuple[list[OpenDecision], list[OpenGang]]] = [([], [])]
    size = _PAGE_OVERHEAD_BYTES
    for one in _open_items(state):
        length = len(_encode(one))
        if size + length > PAGE_BYTES_MAX and size > _PAGE_OVERHEAD_BYTES:
            pages.append(([], []))
            size = _PAGE_OVERHEAD_BYTES
        size += length
        if isinstance(one, OpenDecision):
            pages[-1][0].append(one)
        else:
            pages[-1][1].append(one)
    return [
        Checkpoint(
            epoch=state.epoch,
            up_to=state.view.decisions_seq,
            outcomes_seq=outcomes_seq,
            page=number,
            pages=len(pages),
            decisions=tuple(decisions),
            gangs=tuple(gangs),
        )
        for number, (decisions, gangs) in enumerate(pages)
    ]


def _take_note(state: State, record: NoteOpened | NoteClosed) -> None:
    if record.kind != "backoff":
        return
    history = state.gangs.history(record.gang_id)
    if isinstance(record, NoteClosed):
        history.backoff = None
        return
    history.backoff = record
    history.failures += 1


def _open_items(state: State) -> list[OpenDecision | OpenGang]:
    items: list[OpenDecision | OpenGang] = []
    for seq, open_act in sorted(state.open.items()):
        items.append(OpenDecision(seq=seq, decision=open_act.act))
    for gang_id, gang in sorted(state.gangs.by_id.items()):
        if _worth_keeping(gang.history):
            items.append(_open_gang(gang_id, gang.history))
    for gang_id, history in sorted(state.gangs.remembered.items()):
        items.append(_open_gang(gang_id, history))
    return items


def _worth_keeping(history: History) -> bool:
    return bool(history.attempt or history.started or history.backoff is not None)


def _open_gang(gang_id: str, history: History) -> OpenGang:
    return OpenGang(
        gang_id=gang_id,
        attempt=history.attempt,
        started=history.started,
        first_seen_ms=history.first_seen_ms,
        notes=(history.backoff,) if history.backoff is not None else (),
    )


def _touch(state: State, record: DecisionRecord) -> None:
    if isinstance(record, EpochOpened | Checkpoint | StreamOpened):
        return
    gang = state.gangs.by_id.get(record.gang_id)
    if gang is not None:
        state.gangs.touch(gang)
