from typing import Any, Literal

import msgspec
import pytest

from services.controller.core.events import ControllerEvent, EventIntent, group_event
from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.statuses.announcements import Announcement, announcements
from services.controller.core.statuses.intents import (
    CompareGroup,
    FreeNodes,
    MarkPods,
    PatchGroup,
    ReportEvicted,
    ReportPlaced,
    forget_outdated,
    plan,
    remember_stored,
)
from services.controller.state import Report, WrittenGang
from shared.contracts.verdicts import Condition, PodRef, Verdict, Why
from shared.dialects.discovery import dialect
from tests.services.controller.core.samples import (
    KNOBS,
    START_MS,
    make_running,
    make_verdict,
    make_waiting,
    situation,
)
from tests.support.golden import Golden

REFUSED = "w-2: policy says no"


def holding(type_: str, message: str = "", **given: Any) -> Condition:
    fields: dict[str, Any] = {"status": "True", "reason": "Some", "since_ms": START_MS}
    return Condition(type=type_, message=message, **{**fields, **given})


def releasing(status: str = "True", since_ms: int = START_MS) -> Verdict:
    one = holding("Releasing", f"BindingRefused: {REFUSED}", status=status, since_ms=since_ms)
    return make_verdict(phase="Starting", conditions=(one,), attempt=1)


def reported(verdict: Verdict, reason: str) -> Announcement:
    return next(one for one in announcements(verdict) if one.reason == reason)


def reasons(verdict: Verdict) -> list[str]:
    return [one.reason for one in announcements(verdict)]


class Controller:
    """What the shell does for one gang, at instants that a test gives."""

    def __init__(self) -> None:
        self.memory = WrittenGang()
        self.events: list[tuple[str, str]] = []
        self.patches = 0
        self.marked: list[str] = []

    def hear(self, verdict: Verdict, after_ms: int = 0) -> None:
        """Write all that is due of a verdict."""
        now_ms = START_MS + after_ms
        forget_outdated(self.memory, verdict)
        what = situation(verdict, since_ms=now_ms)
        for _ in range(20):
            due = plan(what, self.memory, now_ms, KNOBS).now
            for intent in due:
                match intent:
                    case PatchGroup():
                        self.memory.annotation = intent.annotation
                        self.memory.meaning = intent.meaning
                        self.memory.group_at_ms = now_ms
                        self.patches += 1
                    case EventIntent():
                        self.memory.events[intent.topic] = Report(
                            intent.why, intent.message, now_ms
                        )
                        self.events.append((intent.body["reason"], intent.message))
                    case MarkPods():
                        self.memory.marked |= {
                            mark.pod.uid: Report(mark.reason, mark.message, now_ms)
                            for mark in intent.marks
                        }
                        self.marked += [mark.pod.name for mark in intent.marks]
                    case CompareGroup() | FreeNodes():
                        pass
                    case ReportPlaced():
                        self.memory.placed = intent.placed
                    case ReportEvicted():
                        self.memory.evicted = intent.evicted
            what = msgspec.structs.replace(what, compared=True)
            if not due:
                return
        raise AssertionError("a plan that never empties")


def test_a_release_is_written_and_reported_at_once_though_the_gang_is_only_starting() -> None:
    desk = Controller()
    desk.hear(releasing())
    assert desk.patches == 1
    ((reason, message),) = desk.events
    assert reason == "GangReleased"
    assert message.startswith(f"BindingRefused: {REFUSED}; its bound pods are deleted")


def test_a_release_that_ended_before_it_was_read_is_still_reported_and_once() -> None:
    desk = Controller()
    desk.hear(releasing("False"))
    assert [reason for reason, _ in desk.events] == ["GangReleased"]
    desk = Controller()
    desk.hear(releasing())
    desk.hear(releasing("False", START_MS + 400), 400)
    assert [reason for reason, _ in desk.events] == ["GangReleased"]


@pytest.mark.parametrize("status", ["True", "False"])
def test_an_eviction_at_the_run_limit_is_reported_as_one(
    status: Literal["True", "False"], golden: Golden
) -> None:
    verdict = releasing(status)
    words = "RunLimitExceeded: its run limit of 1h has passed"
    (release,) = (each for each in verdict.conditions if each.type == "Releasing")
    release = msgspec.structs.replace(release, message=words)
    desk = Controller()
    desk.hear(msgspec.structs.replace(verdict, conditions=(release,)))
    ((reason, message),) = desk.events
    assert reason == "RunLimitExceeded"
    golden(message)


def test_a_second_release_for_the_same_cause_is_reported_again() -> None:
    desk = Controller()
    desk.hear(releasing())
    desk.hear(releasing("False", START_MS + 400), 400)
    desk.hear(releasing("True", START_MS + 9_000), 9_000)
    assert [reason for reason, _ in desk.events] == ["GangReleased"] * 2


def test_a_refused_binding_is_reported_once_in_the_api_servers_words_however_often() -> None:
    sentence = f"the API server refused to bind {REFUSED}; Tutti retries it later"
    why = Why(reason="BindingRefused", sentence=sentence, since_ms=START_MS)
    desk = Controller()
    for after_ms in (0, 5_000, 11_000):
        desk.hear(make_verdict(phase="Starting"), after_ms)
        desk.hear(make_waiting(why=why, conditions=(), waiting=()), after_ms + 1_000)
    assert desk.events == [("BindingRefused", sentence)]


def test_holds_are_reported_in_their_words_also_when_they_end_unfilled() -> None:
    words = "w-2 failed on n-2: capacity for its successor is reserved on n-2 until 14:02:10 UTC"
    desk = Controller()
    desk.hear(make_running(conditions=(holding("RoomHeld", words),)))
    assert ("RoomHeld", words) in desk.events
    filled = holding("RoomHeld", status="False", reason="Filled")
    assert "HoldExpired" not in reasons(make_running(conditions=(filled,)))
    expired = holding("RoomHeld", status="False", reason="Expired", since_ms=START_MS + 60_000)
    for after_ms in (60_000, 61_000):
        desk.hear(make_running(conditions=(expired,)), after_ms)
    assert [reason for reason, _ in desk.events].count("HoldExpired") == 1
    assert reported(make_running(conditions=(expired,)), "HoldExpired").type == "Warning"


def test_what_is_bound_in_part_or_degraded_is_a_warning_while_it_lasts() -> None:
    for type_ in ("PartlyBound", "Degraded", "OtherScheduler"):
        assert reported(make_verdict(conditions=(holding(type_, "so"),)), type_).type == "Warning"
        over = make_verdict(conditions=(holding(type_, status="False"),))
        assert reasons(over) == []


def test_a_gang_that_is_degraded_for_a_moment_only_is_no_news() -> None:
    desk = Controller()
    degraded = make_running(phase="Unknown", placed=(), conditions=(holding("Degraded", "so"),))
    desk.hear(degraded)
    assert ("Degraded", "so") not in desk.events
    memory, what = desk.memory, situation(degraded, compared=True)
    assert plan(what, memory, START_MS, KNOBS).next_ms == START_MS + KNOBS.waiting_ms


def test_while_a_gang_is_released_only_the_release_is_reported() -> None:
    why = Why(reason="BindingRefused", sentence="is being released", since_ms=START_MS)
    verdict = msgspec.structs.replace(releasing(), why=why)
    assert reasons(verdict) == ["GangReleased"]


def test_a_placed_gang_that_does_not_start_for_long_is_reported_and_no_pod_is_marked() -> None:
    why = Why(reason="NotStarting", sentence="w-1: ErrImagePull", since_ms=START_MS)
    extra = (PodRef(uid="u-9", name="w-9"),)
    verdict = make_running(why=why, waiting=extra)
    desk = Controller()
    desk.hear(verdict)
    assert ("NotStarting", "w-1: ErrImagePull") not in desk.events
    desk.hear(verdict, 2_000)
    assert ("NotStarting", "w-1: ErrImagePull") in desk.events
    assert desk.marked == []


def test_a_gang_that_hangs_while_it_starts_is_shown_as_waiting() -> None:
    why = Why(reason="RepairRoom", sentence="2 of 3 members are placed", since_ms=START_MS)
    verdict = make_waiting(phase="Starting", why=why, conditions=())
    desk = Controller()
    desk.hear(verdict)
    assert desk.patches == 0
    what = situation(verdict)
    assert plan(what, desk.memory, START_MS, KNOBS).next_ms == START_MS + KNOBS.settle_ms


def test_events_of_an_earlier_process_are_not_sent_again() -> None:
    held = holding("RoomHeld", "room is held")
    verdict = make_running(conditions=(held,), placed=())
    desk = Controller()
    remember_stored(desk.memory, annotation_of(verdict), verdict, START_MS)
    desk.hear(verdict)
    assert desk.events == []


def test_another_placement_after_a_restart_is_news() -> None:
    """The controller ended while the gang ran, and the gang has waited since."""
    desk = Controller()
    waits = make_waiting(waiting=())
    forget_outdated(desk.memory, waits)
    remember_stored(desk.memory, annotation_of(make_running()), waits, START_MS)
    desk.hear(make_running(placed=()), 5_000)
    assert desk.events == [("Scheduled", "pod group is ready")]


def test_every_dialect_shows_all_conditions_as_they_are() -> None:
    conditions = tuple(
        holding(type_, "words", status=status)
        for type_ in ("PartlyBound", "Releasing", "RoomHeld", "Degraded", "OtherScheduler")
        for status in ("True", "False")
    )
    for name in ("volcano", "incubator", "sigs"):
        patch = dialect(name).status(make_verdict(dialect=name, conditions=conditions))
        assert patch is not None
        shown = [(one["type"], one["status"]) for one in patch.body["status"]["conditions"]]
        assert shown == [(one.type, one.status) for one in conditions]


def test_an_event_is_named_after_its_meaning() -> None:
    """So that another process that reports the same finds it."""
    patch = dialect("volcano").status(make_verdict())
    assert patch is not None
    names = {
        group_event(
            make_verdict(), patch.resource, ControllerEvent("Warning", reason, ""), now_ms=START_MS
        ).name
        for reason in ("GangReleased", "RoomHeld", "GangReleased")
    }
    assert len(names) == 2
