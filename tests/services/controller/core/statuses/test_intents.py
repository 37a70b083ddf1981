import msgspec

from services.controller.core.events import EventIntent
from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.statuses.intents import (
    ADMIT,
    SCALE,
    SETTLE,
    CompareGroup,
    FreeNodes,
    Intent,
    MarkPods,
    PatchGroup,
    Plan,
    ReportEvicted,
    ReportPlaced,
    Situation,
    forget_outdated,
    meaning_of,
    plan,
    remember_stored,
)
from services.controller.state import MarkReason, Report, WrittenGang
from shared.contracts import annotations
from shared.contracts.verdicts import Condition, PodRef, Verdict, Why
from tests.services.controller.core.samples import (
    KNOBS,
    SENTENCE,
    START_MS,
    make_running,
    make_verdict,
    make_waiting,
    situation,
)
from tests.support.golden import Golden


def at(after_ms: int) -> int:
    return START_MS + after_ms


def kinds(planned: Plan) -> list[str]:
    return [type(intent).__name__ for intent in planned.now]


def reports(intent: MarkPods, now_ms: int) -> dict[str, Report[MarkReason]]:
    return {mark.pod.uid: Report(mark.reason, mark.message, now_ms) for mark in intent.marks}


def carry_out(  # noqa: C901 - one case for each intent
    what: Situation, memory: WrittenGang, now_ms: int
) -> list[Intent]:
    """Do as the shell does until nothing is due: plan, write, remember, plan."""
    written: list[Intent] = []
    for _ in range(100):
        due = plan(what, memory, now_ms, KNOBS).now
        if not due:
            return written
        for intent in due:
            written.append(intent)
            match intent:
                case PatchGroup():
                    memory.annotation, memory.meaning = intent.annotation, intent.meaning
                    memory.group_at_ms = now_ms
                    what = msgspec.structs.replace(what, compared=True)
                case EventIntent():
                    memory.events[intent.topic] = Report(intent.why, intent.message, now_ms)
                case MarkPods():
                    memory.marked |= reports(intent, now_ms)
                case FreeNodes():
                    memory.ended |= {pod.uid for pod in intent.pods}
                case ReportPlaced():
                    memory.placed = intent.placed
                case ReportEvicted():
                    memory.evicted = intent.evicted
                case CompareGroup():
                    remember_stored(memory, "", what.verdict, now_ms)
                    what = msgspec.structs.replace(what, compared=True)
    raise AssertionError("a plan that never empties")


def test_a_group_that_operators_wait_for_is_admitted_at_once_and_before_all_others() -> None:
    verdict = make_verdict(phase="Inqueue", members=0, pending=0)
    planned = plan(situation(verdict), WrittenGang(), at(0), KNOBS)
    assert kinds(planned) == ["PatchGroup"]
    assert planned.urgency == ADMIT
    (intent,) = planned.now
    assert isinstance(intent, PatchGroup)
    assert intent.patches[0].body["status"]["phase"] == "Inqueue"


def test_no_write_goes_before_a_gang_of_which_nothing_is_left_to_write() -> None:
    planned = plan(situation(make_verdict(phase="Gone")), WrittenGang(), at(0), KNOBS)
    assert planned == Plan((), None, SETTLE), "else a busy API server would keep it here for ever"
    assert SETTLE < ADMIT


def test_a_gang_bound_within_a_second_costs_one_patch_one_event_and_its_pod_events(
    golden: Golden,
) -> None:
    memory = WrittenGang()
    assert carry_out(situation(make_verdict()), memory, at(0)) == []
    assert carry_out(situation(make_verdict(phase="Starting")), memory, at(300)) == []
    written = carry_out(situation(make_running()), memory, at(600))
    assert [type(one).__name__ for one in written] == ["PatchGroup", "EventIntent", "ReportPlaced"]
    event = written[1]
    assert isinstance(event, EventIntent)
    assert (event.body["type"], event.body["reason"]) == ("Normal", "Scheduled")
    golden(event.message)
    pods = written[2]
    assert isinstance(pods, ReportPlaced)
    assert [(pod.name, pod.node) for pod in pods.pods][1] == ("w-1", "n-1")


def test_a_passing_phase_is_written_once_it_has_lasted() -> None:
    planned = plan(situation(make_verdict()), WrittenGang(), at(0), KNOBS)
    assert (planned.now, planned.next_ms) == ((), at(KNOBS.settle_ms))
    assert kinds(plan(situation(make_verdict()), WrittenGang(), at(KNOBS.settle_ms), KNOBS)) == [
        "PatchGroup"
    ]


def test_status_and_annotation_travel_in_one_patch_where_the_resource_allows() -> None:
    (intent, *_) = plan(situation(make_running()), WrittenGang(), at(0), KNOBS).now
    assert isinstance(intent, PatchGroup)
    (patch,) = intent.patches
    metadata = patch.body["metadata"]
    assert metadata["uid"] == "gang-uid"
    assert metadata["annotations"][annotations.VERDICT] == annotation_of(make_running())
    assert metadata["annotations"][annotations.TRACE_ID] == "0" * 32
    assert patch.body["status"]["phase"] == "Running"


def test_the_hypernode_of_a_gang_is_written_on_its_group() -> None:
    (intent, *_) = plan(situation(make_running(domain="rack-1")), WrittenGang(), at(0), KNOBS).now
    assert isinstance(intent, PatchGroup)
    notes = intent.patches[0].body["metadata"]["annotations"]
    assert notes["volcano.sh/job-allocated-hypernode"] == "rack-1"


def test_where_status_is_a_subresource_the_annotation_follows_the_status() -> None:
    verdict = make_running(dialect="incubator")
    (intent, *_) = plan(situation(verdict), WrittenGang(), at(0), KNOBS).now
    assert isinstance(intent, PatchGroup)
    assert [patch.subresource for patch in intent.patches] == ["status", ""]
    assert "status" not in intent.patches[1].body


def test_a_waiting_gang_is_reported_on_group_and_pods_after_two_seconds(golden: Golden) -> None:
    memory, what = WrittenGang(), situation(make_waiting())
    assert kinds(plan(what, memory, at(1_000), KNOBS)) == ["PatchGroup"]
    carry_out(what, memory, at(1_000))
    later = carry_out(msgspec.structs.replace(what, compared=True), memory, at(2_000))
    assert [type(one).__name__ for one in later] == ["EventIntent", "MarkPods"]
    event, marks = later
    assert isinstance(event, EventIntent)
    assert isinstance(marks, MarkPods)
    assert len(marks.marks) == 3
    assert not marks.scaling
    assert event.body["type"] == "Warning"
    golden(event.message)
    (condition,) = marks.marks[0].body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["reason"], condition["message"]) == ("NotEnoughResources", SENTENCE)


def words_of(written: list[Intent]) -> list[str]:
    """The reasons of the conditions, in the order in which pods were marked."""
    marks = [mark for one in written if isinstance(one, MarkPods) for mark in one.marks]
    return [mark.body["status"]["conditions"][0]["reason"] for mark in marks]


def test_pods_for_which_new_nodes_help_are_marked_for_autoscalers_at_once_and_first() -> None:
    what = situation(make_waiting(unschedulable=3))
    assert plan(what, WrittenGang(), at(100), KNOBS).next_ms == at(KNOBS.scaling_ms)
    planned = plan(what, WrittenGang(), at(KNOBS.scaling_ms), KNOBS)
    assert planned.urgency == SCALE
    assert words_of(list(planned.now)) == ["Unschedulable"] * 3


def test_pods_are_marked_otherwise_at_once_when_new_nodes_help_no_more() -> None:
    memory = WrittenGang()
    carry_out(situation(make_waiting(unschedulable=3)), memory, at(2_000))
    why = Why(reason="NotEnoughQuota", sentence="queue q is full", since_ms=at(2_010))
    planned = plan(situation(make_waiting(why=why)), memory, at(2_010), KNOBS)
    assert words_of(list(planned.now)) == ["NotEnoughQuota"] * 3
    reserved = Why(reason="NotEnoughResources", sentence=SENTENCE, pod_reason="CapacityReserved")
    planned = plan(situation(make_waiting(why=reserved)), memory, at(2_010), KNOBS)
    assert words_of(list(planned.now)) == ["CapacityReserved"] * 3


def test_only_the_members_that_need_other_nodes_are_unschedulable() -> None:
    why = Why(reason="NotEnoughResources", sentence=SENTENCE, pod_reason="NodesTooSmall")
    what = situation(make_waiting(why=why, unschedulable=1))
    written = carry_out(what, WrittenGang(), at(2_000))
    assert words_of(written) == ["Unschedulable", "NodesTooSmall", "NodesTooSmall"]


def test_a_gang_of_a_thousand_is_marked_in_a_few_intents() -> None:
    pods = tuple(PodRef(uid=f"u-{index}", name=f"w-{index}") for index in range(1_000))
    memory, what = WrittenGang(), situation(make_waiting(waiting=pods, unschedulable=1_000))
    written = carry_out(what, memory, at(1_000))
    marks = [one for one in written if isinstance(one, MarkPods)]
    assert sum(len(one.marks) for one in marks) == len(memory.marked) == 1_000
    assert len(marks) == 8


def test_a_gang_that_is_bound_after_a_second_never_had_a_waiting_condition() -> None:
    memory = WrittenGang()
    carry_out(situation(make_waiting()), memory, at(1_500))
    written = carry_out(situation(make_running()), memory, at(1_900))
    assert not [one for one in written if isinstance(one, MarkPods)]
    assert memory.marked == {}


def test_other_numbers_wait_for_the_refresh_another_reason_does_not() -> None:
    memory = WrittenGang()
    carry_out(situation(make_waiting()), memory, at(2_000))
    other = Why(reason="NotEnoughResources", sentence="5 nodes short", since_ms=START_MS)
    numbers = situation(make_waiting(why=other), since_ms=at(2_100))
    planned = plan(numbers, memory, at(2_100), KNOBS)
    assert (planned.now, planned.next_ms) == ((), at(2_000 + KNOBS.refresh_ms))
    assert kinds(plan(numbers, memory, at(2_000 + KNOBS.refresh_ms), KNOBS)) == ["PatchGroup"]
    reason = Why(reason="QueueNotOpen", sentence="queue q is Closed", since_ms=START_MS)
    planned = plan(situation(make_waiting(why=reason)), memory, at(2_100), KNOBS)
    assert kinds(planned) == ["PatchGroup", "EventIntent", "MarkPods"]


def test_other_words_for_the_same_reason_are_reported_again_after_a_minute() -> None:
    memory = WrittenGang()
    carry_out(situation(make_waiting()), memory, at(2_000))
    other = Why(reason="NotEnoughResources", sentence="5 nodes short", since_ms=START_MS)
    what = situation(make_waiting(why=other))
    assert kinds(plan(what, memory, at(10_000), KNOBS)) == ["PatchGroup"]
    carry_out(what, memory, at(10_000))
    what = msgspec.structs.replace(what, compared=True)
    again = carry_out(what, memory, at(2_000 + KNOBS.repeat_ms))
    assert [type(one).__name__ for one in again] == ["EventIntent", "MarkPods"]


def test_an_equal_verdict_writes_nothing_but_looks_once_whether_it_still_stands() -> None:
    memory = WrittenGang()
    carry_out(situation(make_running()), memory, at(0))
    again = situation(make_running(epoch=9, at_ms=at(5_000)))
    assert kinds(plan(again, memory, at(5_000), KNOBS)) == ["CompareGroup"]
    compared = msgspec.structs.replace(again, compared=True)
    assert plan(compared, memory, at(5_000), KNOBS).now == ()


def test_a_gang_from_before_our_start_is_read_first() -> None:
    memory, verdict = WrittenGang(), make_running(first_seen_ms=START_MS - 1)
    what = situation(verdict)
    assert kinds(plan(what, memory, at(0), KNOBS)) == ["CompareGroup"]
    remember_stored(memory, annotation_of(verdict), verdict, at(0))
    what = msgspec.structs.replace(what, compared=True)
    assert plan(what, memory, at(0), KNOBS).now == (), "all of it is written and reported already"


def test_a_gang_from_before_our_start_whose_group_says_something_else_is_written() -> None:
    memory, verdict = WrittenGang(), make_running(first_seen_ms=START_MS - 1)
    waiting = make_waiting(first_seen_ms=START_MS - 1)
    remember_stored(memory, annotation_of(waiting), verdict, at(0))
    what = situation(verdict, compared=True)
    assert kinds(plan(what, memory, at(0), KNOBS)) == ["PatchGroup", "EventIntent", "ReportPlaced"]


def test_a_foreign_annotation_in_our_place_is_replaced() -> None:
    memory, verdict = WrittenGang(), make_running(first_seen_ms=START_MS - 1)
    remember_stored(memory, "by hand", verdict, at(0))
    assert isinstance(
        plan(situation(verdict, compared=True), memory, at(0), KNOBS).now[0], PatchGroup
    )


def test_a_gang_without_object_gets_conditions_and_pod_events_only() -> None:
    memory = WrittenGang()
    waiting = make_waiting(dialect="", uid="", name="")
    assert {type(one) for one in carry_out(situation(waiting), memory, at(2_000))} == {MarkPods}
    running = make_running(dialect="", uid="", name="")
    assert {type(one) for one in carry_out(situation(running), memory, at(3_000))} == {ReportPlaced}


def test_a_pod_is_nominated_for_the_node_of_its_victims_while_they_are_evicted() -> None:
    """Recorded of Volcano: a preemption that is given up leaves the name of a node on its pods."""
    memory = WrittenGang()
    carry_out(situation(make_waiting(unschedulable=3)), memory, at(10_000))
    why = Why(reason="Preempting", sentence="waits for 2 pods to leave", since_ms=at(20_000))
    one, two, extra = make_waiting().waiting
    pods = *(msgspec.structs.replace(pod, node="n-0") for pod in (one, two)), extra
    written = carry_out(situation(make_waiting(why=why, waiting=pods)), memory, at(20_000))
    assert nominations(written) == ["n-0", "n-0", None]
    written = carry_out(situation(make_waiting(unschedulable=3)), memory, at(21_000))
    assert nominations(written) == [None] * 3
    assert words_of(written) == ["Unschedulable"] * 3


def nominations(written: list[Intent]) -> list[str | None]:
    marks = [mark for one in written if isinstance(one, MarkPods) for mark in one.marks]
    return [mark.body["status"]["nominatedNodeName"] for mark in marks]


def test_pods_that_have_ended_are_freed_once() -> None:
    memory = WrittenGang()
    pods = tuple(PodRef(uid=f"u-{index}", name=f"w-{index}") for index in range(20))
    verdict = make_running(phase="Completed", placed=(), ended=pods)
    written = carry_out(situation(verdict), memory, at(0))
    freed = [one.pods for one in written if isinstance(one, FreeNodes)]
    assert [pod.uid for each in freed for pod in each] == [pod.uid for pod in pods]
    assert carry_out(situation(verdict, compared=True), memory, at(100)) == []


def test_each_evicted_pod_is_reported_once() -> None:
    memory = WrittenGang()
    first, second = (PodRef(uid=f"u-{i}", name=f"w-{i}", node="n-0") for i in range(2))
    carry_out(situation(make_verdict()), memory, at(0))
    written = carry_out(situation(make_verdict(evicted=(first,))), memory, at(100))
    assert ReportEvicted((first,), frozenset({"u-0"})) in written
    assert carry_out(situation(make_verdict(evicted=(first,))), memory, at(200)) == []
    both = make_verdict(evicted=(first, second))
    assert carry_out(situation(both), memory, at(300)) == [
        ReportEvicted((second,), frozenset({"u-0", "u-1"}))
    ]


def test_nothing_is_written_on_a_group_that_is_gone() -> None:
    memory = WrittenGang()
    assert plan(situation(make_verdict(phase="Gone")), memory, at(9_000), KNOBS).next_ms is None
    memory.group_missing = True
    assert plan(situation(make_running(placed=())), memory, at(0), KNOBS) == Plan((), None, SETTLE)


def test_a_gang_that_ran_waits_and_runs_again_is_reported_again() -> None:
    memory = WrittenGang()
    reported: list[str] = []
    for verdict in (make_running(placed=()), make_waiting(), make_running(placed=())):
        forget_outdated(memory, verdict)
        written = carry_out(situation(verdict), memory, at(10_000))
        reported += [one.body["reason"] for one in written if isinstance(one, EventIntent)]
    assert reported == ["Scheduled", "Unschedulable", "Scheduled"]


def test_marks_of_pods_that_wait_no_more_are_forgotten() -> None:
    memory = WrittenGang()
    carry_out(situation(make_waiting()), memory, at(2_000))
    forget_outdated(memory, make_waiting(waiting=make_waiting().waiting[:1]))
    assert set(memory.marked) == {"u-0"}


def test_a_group_that_is_not_admitted_says_so_without_a_warning() -> None:
    memory = WrittenGang()
    why = Why(reason="QueueQuota", sentence="queue resource quota insufficient: insufficient cpu")
    verdict = make_verdict(why=why)
    events = [
        one
        for one in carry_out(situation(verdict), memory, at(5_000))
        if isinstance(one, EventIntent)
    ]
    assert [(event.body["type"], event.message) for event in events] == [("Normal", why.sentence)]


def test_a_gang_whose_pods_do_not_exist_yet_is_no_event() -> None:
    why = Why(reason="NotEnoughPods", sentence="0 of 3 pods exist", since_ms=START_MS)
    verdict = make_verdict(phase="Inqueue", members=0, pending=0, why=why)
    written = carry_out(situation(verdict), WrittenGang(), at(60_000))
    assert {type(one) for one in written} == {PatchGroup}


def test_a_large_gang_is_marked_a_few_pods_at_a_time() -> None:
    pods = tuple(
        msgspec.structs.replace(make_waiting().waiting[0], uid=f"u-{index}") for index in range(500)
    )
    memory, what = WrittenGang(), situation(make_waiting(waiting=pods))
    planned = plan(what, memory, at(2_000), KNOBS)
    (marks,) = [one for one in planned.now if isinstance(one, MarkPods)]
    assert len(marks.marks) == 16
    carry_out(what, memory, at(2_000))
    assert len(memory.marked) == 500


def test_meaning_leaves_out_numbers_and_words() -> None:
    def meaning(verdict: Verdict) -> tuple[object, ...]:
        return meaning_of(verdict)

    condition = Condition(type="Unschedulable", status="True", reason="R", message="a", since_ms=1)
    other = msgspec.structs.replace(condition, message="b", since_ms=2)
    assert meaning(make_verdict(conditions=(condition,), pending=1)) == meaning(
        make_verdict(conditions=(other,), pending=2)
    )
    assert meaning(make_verdict()) != meaning(make_verdict(phase="Running"))


def test_a_gang_whose_bindings_are_under_way_is_left_alone_until_that_lasts() -> None:
    starting = situation(make_verdict(phase="Starting"))
    planned = plan(starting, WrittenGang(), at(0), KNOBS)
    assert (planned.now, planned.next_ms) == ((), at(KNOBS.starting_ms))
    assert kinds(plan(starting, WrittenGang(), at(KNOBS.starting_ms), KNOBS)) == ["PatchGroup"]
