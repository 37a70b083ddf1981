"""Planted bugs: each must be caught by a checker within a stated number of seeds.

A canary replaces one function of the services, or one header of the bus, by what a hurried change
could make of it. Nothing here is about the checkers: they are the ones that a release runs with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from services.binder.api import KubePods
from services.binder.core.machine import Machine
from services.binder.outcome_ledger import OutcomeLedger
from services.binder.service import Binder
from services.binder.state import EpochsSeen
from services.gang_planner.core.ingest import decision_log
from services.gang_planner.core.lifecycle import assessment, release, repair
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.preemption import requests, tracking
from services.gang_planner.core.state import accounting, in_flight
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.reservations import Reservation, ReservationTable
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.contracts.decisions import NoteClosed, NoteOpened
from shared.contracts.outcomes import Outcome
from shared.kube.client import KubeClient
from shared.model.gang_keys import GangKey, key_of
from shared.model.objects import Pod
from tests.simulation.bus import SimWire
from tests.simulation.claim_canaries import CANARIES as CLAIM_CANARIES
from tests.simulation.planting import Canary, Replaced


def _without_header(name: str, subject: str) -> Replaced:
    send = SimWire.publish

    async def publish(
        self: SimWire, to: str, payload: bytes, reply: str = "", headers: Any = None
    ) -> None:
        if headers and to.startswith(subject):
            headers = {key: value for key, value in headers.items() if key != name}
        await send(self, to, payload, reply, headers)

    return [(SimWire, "publish", publish)]


def _fencing_off() -> Replaced:
    return _without_header("Nats-Expected-Last-Sequence", "decisions.")


def _cluster_fencing_off() -> Replaced:
    return _without_header("Nats-Expected-Last-Sequence", "cluster.")


def _second_outcome() -> Replaced:
    return _without_header("Nats-Expected-Last-Subject-Sequence", "outcomes.")


def _ack_before_the_effect() -> Replaced:
    start = Binder._start

    async def hurried(self: Binder, lease: Any) -> None:
        await lease.delivery.ack()
        await start(self, lease)

    return [(Binder, "_start", hurried)]


def _outcome_lost() -> Replaced:
    settle = OutcomeLedger.settle
    count = [0]

    async def forgetful(
        self: OutcomeLedger, delivery: Delivery, outcome: Outcome, gang: str
    ) -> Any:
        count[0] += 1
        if count[0] % 20:
            return await settle(self, delivery, outcome, gang)
        await delivery.ack()
        return "done"

    return [(OutcomeLedger, "settle", forgetful)]


def _bound_by_name() -> Replaced:
    bind = KubeClient.bind

    async def by_name(
        self: Any, namespace: str, pod: str, uid: str, *rest: Any, **more: Any
    ) -> Any:
        del uid
        return await bind(self, namespace, pod, "", *rest, **more)

    return [(KubeClient, "bind", by_name)]


def _deleted_by_name() -> Replaced:
    send = KubePods._send

    async def by_name(
        self: KubePods, method: Any, path: str, body: Any = None, *content_type: str
    ) -> Any:
        if body is not None:
            body = {key: value for key, value in body.items() if key != "preconditions"}
            if "metadata" in body:
                body = {**body, "metadata": {}}
        return await send(self, method, path, body, *content_type)

    return [(KubePods, "_send", by_name)]


def _preflight_skipped() -> Replaced:
    return [(Machine, "_begin", lambda self: self._bind())]


def _release_forgotten() -> Replaced:
    return [(release, "begin", lambda *_: False)]


def _release_without_end() -> Replaced:
    return [(release, "_decide", lambda *_: None)]


def _hold_never_closed() -> Replaced:
    notes = HoldTable.notes

    def forgetful(self: HoldTable, *given: Any) -> Any:
        return [note for note in notes(self, *given) if not isinstance(note, NoteClosed)]

    return [(HoldTable, "notes", forgetful)]


def _hold_without_deadline() -> Replaced:
    notes = HoldTable.notes

    def endless(self: HoldTable, *given: Any) -> Any:
        return [
            msgspec.structs.replace(note, until_ms=0) if isinstance(note, NoteOpened) else note
            for note in notes(self, *given)
        ]

    return [(HoldTable, "notes", endless)]


def _assumed_room_dropped_on_restart() -> Replaced:
    return [(decision_log, "_recall_act", lambda *_: None)]


def _late_room_ended_early() -> Replaced:
    return [(in_flight, "LATE_RESERVATION_MS", 0)]


def _repair_never_opened() -> Replaced:
    return [(repair, "_open_when_due", lambda *_: None)]


def _stale_epoch_obeyed() -> Replaced:
    """Each fifth decision is written under an epoch that is over, as if there were no fence, and
    binders do not look at it.
    """
    step, count = Planner.step, [0]

    def stale(self: Planner, *given: int) -> Any:
        done = step(self, *given)
        for one in done.decisions:
            count[0] += 1
            if count[0] % 5 == 0:
                msgspec.structs.force_setattr(one, "epoch", one.epoch - 1)
        return done

    return [(Planner, "step", stale), (EpochsSeen, "check", lambda *_: None)]


def _replay_off_by_one() -> Replaced:
    """A reader that starts at a sequence skips the first record."""
    run = LogReader.run

    async def late(self: LogReader, start: int, handler: Any) -> None:
        await run(self, start + 1, handler)

    return [(LogReader, "run", late)]


def _eviction_without_placement() -> Replaced:
    return [(requests, "assign_members", lambda *_: Assignments([], []))]


def _preemption_without_end() -> Replaced:
    return [(tracking, "follow", lambda _: None)]


def _owners_without_namespace() -> Replaced:
    """Pods of one owner's UID are one gang, whatever their namespaces."""

    def of_owner_alone(pod: Pod) -> GangKey | None:
        key = key_of(pod)
        return ("owner", "", key[2]) if key is not None and key[0] == "owner" else key

    return [(accounting, "key_of", of_owner_alone)]


def _half_a_gang() -> Replaced:
    """A cycle that takes a gang for complete with one member less."""
    minimum: Any = Gang.__dict__["min_member"].fget
    return [(Gang, "min_member", property(lambda self: max(1, minimum(self) - 1)))]


def _start_assumed() -> Replaced:
    return [(assessment, "was_never_complete", lambda _: False)]


def _bound_ignored() -> Replaced:
    begin = Session.begin

    def unbounded(self: Session, pods_in_flight: int = 0, in_flight_max: int = 0) -> None:
        begin(self, pods_in_flight)

    return [(Session, "begin", unbounded)]


def _answers_not_taken_off() -> Replaced:
    end = ReservationTable.end

    def leaking(self: ReservationTable, room: Reservation, *, handed_over: bool = False) -> None:
        end(self, room, handed_over=handed_over)
        self.pods_in_flight += room.act is not None and room.act.counted

    return [(ReservationTable, "end", leaking)]


CANARIES: Final[dict[str, Canary]] = {
    # The fence's own memory of what it stored sees it, too, and crashes with its history.
    "fencing_off": Canary(
        _fencing_off,
        20,
        ("is in force", "stale epoch", "no outcome", "stored as", "opened at sequence"),
        first=187,
    ),
    "cluster_fencing_off": Canary(_cluster_fencing_off, 12, ("is of epoch",), first=104),
    "second_outcome": Canary(_second_outcome, 12, ("second outcome",)),
    "ack_before_the_effect": Canary(_ack_before_the_effect, 12, ("no outcome", "not ended")),
    "outcome_lost": Canary(_outcome_lost, 6, ("no outcome",)),
    "bound_by_name": Canary(_bound_by_name, 60, ("does not say",), first=145),
    "deleted_by_name": Canary(_deleted_by_name, 80, ("no decision names",), first=107),
    "preflight_skipped": Canary(_preflight_skipped, 8, ("binds again",)),
    "late_room_ended_early": Canary(_late_room_ended_early, 40, ("is given away",), first=105),
    "repair_never_opened": Canary(
        _repair_never_opened, 160, ("without a repair", "undisturbed"), first=198
    ),
    "start_assumed": Canary(_start_assumed, 200, ("never complete",), first=148),
    "stale_epoch_obeyed": Canary(
        _stale_epoch_obeyed, 8, ("of a stale epoch",), overlook=("is in force",)
    ),
    "release_forgotten": Canary(
        _release_forgotten, 24, ("undisturbed", "without a repair"), first=108
    ),
    "release_without_end": Canary(
        _release_without_end, 8, ("undisturbed", "still open"), first=101
    ),
    "hold_never_closed": Canary(_hold_never_closed, 6, ("still open",)),
    "hold_without_deadline": Canary(_hold_without_deadline, 6, ("has no deadline",)),
    "assumed_room_dropped_on_restart": Canary(
        _assumed_room_dropped_on_restart, 20, ("over-committed", "no outcome yet")
    ),
    "replay_off_by_one": Canary(
        _replay_off_by_one, 8, ("not ended", "no outcome", "still open", "over-committed")
    ),
    "eviction_without_placement": Canary(
        _eviction_without_placement, 24, ("has no proven placement",), first=101
    ),
    "preemption_without_end": Canary(
        _preemption_without_end, 24, ("is still open", "not ended"), first=101
    ),
    "bound_ignored": Canary(_bound_ignored, 12, ("in flight beside",), first=101),
    "answers_not_taken_off": Canary(_answers_not_taken_off, 12, ("not ended",)),
    "owners_without_namespace": Canary(
        _owners_without_namespace,
        8,
        ("as one gang", "not ended", "never complete"),
        tenant=True,
        first=103,
    ),
    "half_a_gang": Canary(_half_a_gang, 8, ("never complete", "binds again", "without a repair")),
    **CLAIM_CANARIES,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run what is inside with that bug; "" plants none."""
    replaced = CANARIES[name].plant() if name else ()
    before = [(owner, what, owner.__dict__[what]) for owner, what, _ in replaced]
    for owner, what, value in replaced:
        setattr(owner, what, value)
    try:
        yield
    finally:
        for owner, what, value in before:
            setattr(owner, what, value)
