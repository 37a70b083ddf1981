"""The sentence and the state for every situation, as tables of facts."""

from typing import Any, Literal

import msgspec
import pytest

from shared.contracts.verdicts import Condition, ShapeReport
from tests.support.golden import Golden
from tests.tutti.why.situations import answer, gang, member
from tutti.why.explanation import Answer, State
from tutti.why.facts import Group, MemberPod
from tutti.why.planner_liveness import PlannerLiveness

PENDING = (member("a"), member("b"))
PLACED = (member("a", node="n1", phase="Running"), member("b", node="n2", phase="Running"))


@pytest.mark.parametrize(
    ("pods", "group", "state", "sentence"),
    [
        pytest.param(
            PENDING,
            gang("Inqueue", "1 of 2 members fit"),
            "waiting",
            "podgroup/g waits: 1 of 2 members fit",
            id="the verdict says why",
        ),
        pytest.param(
            (),
            gang("Pending", "no pods yet"),
            "waiting",
            "podgroup/g waits: no pods yet",
            id="no pods",
        ),
        pytest.param(
            PENDING,
            gang("Inqueue"),
            "waiting",
            "podgroup/g waits: Inqueue, no reason",
            id="no reason yet",
        ),
        pytest.param(
            PLACED,
            gang("Inqueue", "an old reason"),
            "running",
            "podgroup/g runs on 2 nodes: 2 Running",
            id="the pods are newer than the verdict",
        ),
        pytest.param(
            (*PLACED, member("c")),
            gang("Running"),
            "running",
            "podgroup/g runs on 2 nodes: 1 Pending, 2 Running; 1 beyond its quorum of 2 wait",
            id="an elastic extra waits",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2", waiting="ImagePullBackOff: no such image")),
            gang("Running"),
            "stuck",
            "podgroup/g is placed, but b does not run on n2: ImagePullBackOff: no such image",
            id="a placed member cannot start",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2", phase="Failed", reason="OutOfcpu")),
            gang("Running"),
            "stuck",
            "podgroup/g is placed, but b does not run on n2: OutOfcpu",
            id="the kubelet refused a member",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2")),
            gang("Running"),
            "starting",
            "podgroup/g is placed on 2 nodes: 1 of 2 members run, the rest are starting",
            id="containers are being made",
        ),
        pytest.param(
            (PLACED[0], member("b")),
            gang("Starting"),
            "starting",
            "podgroup/g is being placed: 1 of 2 members have a node",
            id="bindings are in flight",
        ),
        pytest.param(
            (PLACED[0], member("b")),
            gang("Unknown"),
            "growing",
            "podgroup/g is growing: 1 of 2 members are placed",
            id="a started gang was scaled up",
        ),
        pytest.param(
            (
                member("a", node="n1", phase="Succeeded"),
                member("b", node="n2", phase="Succeeded"),
            ),
            gang("Running"),
            "completed",
            "podgroup/g has ended: 2 Succeeded",
            id="all have ended",
        ),
        pytest.param(
            (),
            gang("Completed"),
            "completed",
            "podgroup/g has ended: 2 Succeeded, 0 Failed",
            id="all have ended and are gone",
        ),
        pytest.param(
            PENDING,
            gang(None),
            "unknown",
            "podgroup/g has no verdict yet: is Tutti running?",
            id="no planner has judged it",
        ),
        pytest.param(
            (),
            gang(None),
            "waiting",
            "podgroup/g has no pods yet, and no verdict",
            id="an empty group",
        ),
        pytest.param(
            (member("a", scheduler="other", unscheduled="0/4 nodes are available"),),
            gang(None),
            "not-ours",
            "podgroup/g is scheduled by other, not by Tutti: 0/4 nodes are available",
            id="a gang of another scheduler",
        ),
    ],
)
def test_a_gang_is_explained(
    pods: tuple[MemberPod, ...], group: Group, state: State, sentence: str
) -> None:
    found = answer(*pods, groups=(group,))
    assert found.sentence.startswith(sentence)
    assert found.state == state
    assert found.gangs[0].members == len(pods)


HELD = "w-2 failed on n3 (Error): capacity for its successor is reserved on n3 until 14:02:10 UTC"


def holding(group: Group, type_: str, message: str, status: Literal["True", "False"]) -> Group:
    assert group.verdict is not None
    condition = Condition(type=type_, status=status, message=message)
    verdict = msgspec.structs.replace(group.verdict, conditions=(condition,))
    return msgspec.structs.replace(group, verdict=verdict)


@pytest.mark.parametrize(
    ("pods", "group", "state", "sentence"),
    [
        pytest.param(
            PLACED,
            holding(gang("Starting", "told"), "Releasing", "BindingRefused: b: no", "True"),
            "releasing",
            "podgroup/g is being released: BindingRefused: b: no",
            id="what is bound of it is being deleted",
        ),
        pytest.param(
            PENDING,
            holding(gang("Inqueue", "refused: b: no"), "Releasing", "BindingRefused", "False"),
            "waiting",
            "podgroup/g waits: refused: b: no",
            id="it was released and is tried again",
        ),
        pytest.param(
            (PLACED[0], member("b")),
            holding(gang("Starting", "no room"), "PartlyBound", "1 of 2 are bound: a", "True"),
            "stuck",
            "podgroup/g is bound in part: 1 of 2 are bound: a",
            id="bare pods bound in part",
        ),
        pytest.param(
            (*PLACED, member("w-2", node="n3", phase="Failed", reason="Error")),
            holding(gang("Running"), "RoomHeld", HELD, "True"),
            "stuck",
            f"podgroup/g is placed, but w-2 does not run on n3: Error; {HELD}",
            id="an extra has failed and its room is held",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2", phase="Failed", reason="Error")),
            holding(gang("Running", f"1 of 2 exist; {HELD}"), "RoomHeld", HELD, "True"),
            "waiting",
            f"podgroup/g waits: 1 of 2 exist; {HELD}",
            id="its controller has not made the failed member again yet",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2", phase="Failed", reason="Error")),
            holding(gang("Unknown", "1 of 2 exist"), "Degraded", "1 of the 2 are left", "True"),
            "degraded",
            "podgroup/g is degraded: 1 of the 2 are left",
            id="no room is held for its lost member",
        ),
        pytest.param(
            (PLACED[0], member("b", node="n2", phase="Running", deleting=True)),
            holding(gang("Unknown", "1 of 2 exist"), "Degraded", "1 of the 2 are left", "True"),
            "degraded",
            "podgroup/g is degraded: 1 of the 2 are left",
            id="a member is terminating",
        ),
        pytest.param(
            PLACED,
            holding(gang("Running"), "Degraded", "", "False"),
            "running",
            "podgroup/g runs on 2 nodes: 2 Running",
            id="it was degraded once",
        ),
    ],
)
def test_what_the_conditions_say_is_said_first(
    pods: tuple[MemberPod, ...], group: Group, state: State, sentence: str
) -> None:
    found = answer(*pods, groups=(group,))
    assert (found.state, found.sentence) == (state, sentence)


@pytest.mark.parametrize(
    ("pod", "more", "state", "sentence"),
    [
        pytest.param(
            member("p", group="", unscheduled="2 of 4 fit"),
            {},
            "waiting",
            "pod/p waits: 2 of 4 fit",
            id="its own condition speaks",
        ),
        pytest.param(
            member("p", group="", owner="job"),
            {"events": {"p": "FailedScheduling: no room"}},
            "waiting",
            "owner/job waits: FailedScheduling: no room",
            id="an event speaks",
        ),
        pytest.param(
            member("p", group=""),
            {},
            "unknown",
            "pod/p waits, and no reason is known yet",
            id="silence",
        ),
        pytest.param(
            member("p", group="", scheduler="default-scheduler"),
            {},
            "not-ours",
            "pod/p is scheduled by default-scheduler, not by Tutti",
            id="another scheduler's",
        ),
        pytest.param(
            member("p", group="", node="n1", phase="Running"),
            {},
            "running",
            "pod/p runs on 1 node: 1 Running",
            id="it runs",
        ),
    ],
)
def test_a_pod_without_a_group_is_explained_by_what_was_said_of_it(
    pod: MemberPod, more: dict[str, Any], state: State, sentence: str
) -> None:
    found = answer(pod, **more)
    assert found.sentence.startswith(sentence)
    assert found.state == state


def test_a_gang_with_neither_pods_nor_a_group_waits_for_their_controller() -> None:
    assert answer().sentence.startswith("TFJob train has no pods and no PodGroup yet")


def test_a_job_of_another_scheduler_does_not_wait_for_tutti() -> None:
    found = answer(foreign_scheduler="my-scheduler")
    assert found.sentence.startswith(
        "TFJob train names the scheduler my-scheduler, which Tutti does not serve"
    )
    assert found.state == "not-ours"


QUOTA = 'FailedCreate: pods "a" is forbidden: exceeded quota: compute, requested: cpu=9'


def test_a_controller_that_could_not_make_any_pod_is_believed(golden: Golden) -> None:
    found = answer(troubles=(QUOTA, "an older one"))
    golden(found.sentence)
    assert found.state == "stuck"


def missing_pods(reason: str) -> Group:
    found = gang("Pending", "1 of 2 members exist that could run")
    assert found.verdict is not None
    assert found.verdict.why is not None
    why = msgspec.structs.replace(found.verdict.why, reason=reason)
    return msgspec.structs.replace(found, verdict=msgspec.structs.replace(found.verdict, why=why))


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        pytest.param(
            missing_pods("NotEnoughPods"),
            f"podgroup/g waits: 1 of 2 members exist that could run; {QUOTA}",
            id="pods are missing",
        ),
        pytest.param(
            missing_pods("NotEnoughResources"),
            "podgroup/g waits: 1 of 2 members exist that could run",
            id="room is missing",
        ),
        pytest.param(
            gang(None),
            f"podgroup/g has no pods yet, and no verdict: is Tutti running?; {QUOTA}",
            id="no planner has judged it",
        ),
    ],
)
def test_a_gang_that_waits_for_pods_reports_why_they_are_missing(
    group: Group, sentence: str
) -> None:
    found = answer(groups=(group,), troubles=(QUOTA,))
    assert found.sentence == sentence


EVICTED = "2 of its pods were preempted for gang ns/high; what its controller makes again waits"


@pytest.mark.parametrize(
    ("pods", "status", "sentence"),
    [
        pytest.param(
            PENDING, "True", f"podgroup/g waits: no room; {EVICTED} for room", id="it waits"
        ),
        pytest.param(PENDING, "False", "podgroup/g waits: no room", id="it was placed since"),
        pytest.param(PLACED, "True", "podgroup/g runs on 2 nodes: 2 Running", id="it runs"),
        pytest.param(
            (*PLACED, member("c")),
            "True",
            "podgroup/g runs on 2 nodes: 1 Pending, 2 Running; 1 beyond its quorum of 2 wait; "
            f"{EVICTED} for room",
            id="an extra of it waits",
        ),
    ],
)
def test_an_evicted_gang_is_reported_with_its_preemptor_and_what_follows(
    pods: tuple[MemberPod, ...], status: Literal["True", "False"], sentence: str
) -> None:
    group = holding(gang("Inqueue", "no room"), "Evicted", f"{EVICTED} for room", status)
    assert answer(*pods, groups=(group,)).sentence == sentence


def test_a_missing_right_is_said_instead_of_there_is_nothing() -> None:
    found = answer(forbidden=("pods",))
    assert "not allowed to list pods in namespace ns" in found.sentence
    assert found.forbidden == ("pods",)


def test_of_several_gangs_the_troubled_one_comes_first_and_all_are_counted() -> None:
    stuck = member("s", node="n", waiting="CrashLoopBackOff", group="h")
    found = answer(*PLACED, stuck, groups=(gang("Running"), gang("Running", least=1, name="h")))
    assert found.state == "stuck"
    assert found.sentence.startswith(
        "TFJob train has 2 gangs (1 stuck, 1 running); the first: podgroup/h"
    )
    assert [each.gang for each in found.gangs] == ["ns/h", "ns/g"]


def test_reasons_and_placements_are_printed_in_full() -> None:
    group = gang("Inqueue", "no")
    assert group.verdict is not None
    assert group.verdict.why is not None
    why = msgspec.structs.replace(
        group.verdict.why, shapes=(ShapeReport(role="worker", wanted=2, fit=1),), ahead_count=3
    )
    group = msgspec.structs.replace(
        group, verdict=msgspec.structs.replace(group.verdict, why=why, min_member=3)
    )
    explained = answer(*PLACED, member("c"), groups=(group,)).gangs[0]
    assert explained.state == "waiting"
    assert (explained.reason, explained.since, explained.ahead_count) == (
        "NotEnoughResources",
        "1970-01-01T00:00:01Z",
        3,
    )
    assert explained.shapes[0].role == "worker"
    assert explained.nodes == {"n1": ["a"], "n2": ["b"]}
    assert explained.phases == {"Pending": 1, "Running": 2}
    assert explained.min_member == 3


def test_without_an_active_planner_the_answer_begins_with_a_warning(golden: Golden) -> None:
    silent = PlannerLiveness(state="silent", silent_s=47)
    found = answer(*PENDING, groups=(gang("Inqueue", "no room"),), planner=silent)
    golden(found.warning)
    assert found.planner.lives is False
    golden(found.sentence)
    stopped = answer(*PENDING, groups=(), planner=PlannerLiveness(state="missing"))
    assert "was stopped or has not run here yet" in stopped.warning
    assert "ever" not in stopped.warning
    unseen = PlannerLiveness(detail="no right")
    found = answer(*PENDING, groups=(gang("Inqueue", "no room"),), planner=unseen)
    assert (found.warning, found.planner.lives) == ("", None)


def test_a_suspended_object_says_that_it_is_suspended_whatever_its_group_says(
    golden: Golden,
) -> None:
    words = "spec.suspend is true"
    golden(answer(suspended=words).sentence)
    found = answer(suspended=words, groups=(gang("Pending", "0 of 2 members exist"),))
    assert found.state == "suspended"
    golden(found.sentence)
    found = answer(*PLACED, suspended=words, groups=(gang("Running"),))
    assert found.state == "running", "its pods have not left yet"
    ended = member("a", node="n1", phase="Succeeded")
    found = answer(ended, suspended=words, groups=(gang("Inqueue", "1 of 2 members exist"),))
    assert found.state == "suspended"
    golden(found.sentence)


def test_a_gang_that_waits_for_pods_has_not_ended_although_all_that_exist_have(
    golden: Golden,
) -> None:
    """Its last members were lost, and are not made again yet."""
    ended = member("a", node="n1", phase="Succeeded")
    found = answer(ended, groups=(gang("Inqueue", "1 of 2 members exist that could run"),))
    assert found.state == "waiting"
    golden(found.sentence)


def test_a_gang_whose_pods_were_deleted_when_its_workload_ended_counts_none(golden: Golden) -> None:
    group = gang("Completed")
    assert group.verdict is not None
    verdict = msgspec.structs.replace(group.verdict, succeeded=0)
    found = answer(groups=(msgspec.structs.replace(group, verdict=verdict),))
    assert found.state == "completed"
    golden(found.sentence)


def test_members_that_name_another_scheduler_are_counted() -> None:
    pods = (member("a"), member("b", scheduler="default-scheduler"))
    found = answer(*pods, groups=(gang("Inqueue", "1 of 2 members exist that could run"),))
    assert found.sentence.endswith("1 of its pods names the scheduler default-scheduler")


def test_members_of_another_scheduler_are_counted_once_in_a_sentence() -> None:
    pods = (member("a"), member("b", scheduler="default-scheduler"), member("c", scheduler="x"))
    words = "1 of 3 members exist; 1 of its pods names the scheduler default-scheduler"
    found = answer(*pods, groups=(gang("Inqueue", words),))
    assert found.sentence.endswith(f"{words}; 1 of its pods names the scheduler x")


def test_pods_of_a_group_that_does_not_exist_say_which(golden: Golden) -> None:
    found = answer(member("a", owner="train", unscheduled="an older word"))
    assert found.state == "waiting"
    golden(found.sentence)
    assert [one.reason for one in found.gangs] == ["GroupMissing"]


def test_a_group_of_several_schedulers_waits_for_a_pod_that_names_tutti(golden: Golden) -> None:
    """The planner has no verdict on it: another scheduler may be the one to place its pods."""
    group = msgspec.structs.replace(gang(None), shared=True, title="podgroups.scheduling.k8s.io")
    empty = answer(groups=(group,))
    assert empty.state == "waiting"
    golden(empty.sentence)
    foreign = answer(member("a", scheduler="default-scheduler"), groups=(group,))
    assert foreign.state == "not-ours"
    golden(foreign.sentence)


def test_a_priority_class_that_does_not_exist_is_named(golden: Golden) -> None:
    found = answer(groups=(gang("Pending", "no pods"),), faults=("PriorityClass x does not exist",))
    golden(found.sentence)


def test_members_are_counted_by_role() -> None:
    pods = [
        msgspec.structs.replace(one, pod=msgspec.structs.replace(one.pod, role=role))
        for one, role in zip((*PLACED, member("c")), ("ps", "worker", "worker"), strict=True)
    ]
    found = answer(*pods, groups=(gang("Running"),))
    assert found.gangs[0].roles == {"ps": {"Running": 1}, "worker": {"Pending": 1, "Running": 1}}
    assert answer(*PLACED, groups=(gang("Running"),)).gangs[0].roles == {}


def _children(*, implied: bool = True, least: int = 1) -> Answer:
    """A JobSet of two Jobs, whose pods name a scheduler and nothing else."""
    pods = [member(f"p-{index}", group=f"podgroup-{index // 2}") for index in range(4)]
    pods = [
        msgspec.structs.replace(one, pod=msgspec.structs.replace(one.pod, group_implied=implied))
        for one in pods
    ]
    groups = tuple(gang("Inqueue", "0 of 1", least=least, name=f"podgroup-{n}") for n in range(2))
    return answer(*pods, groups=groups, kind="JobSet")


def test_an_object_whose_pods_nothing_declares_one_gang_says_so() -> None:
    found = _children()
    assert found.sentence.endswith(
        "; nothing declares its 4 pods one gang, so each is placed by itself: with the annotation "
        "tutti.dev/gang: all on the JobSet they start together"
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(_children(implied=False), id="its pods name their groups"),
        pytest.param(_children(least=2), id="a generated group has the declared minimum"),
        pytest.param(
            answer(member("p-0", node="n"), groups=(gang("Running", least=1),), kind="Job"),
            id="it has one pod",
        ),
    ],
)
def test_other_objects_do_not_say_so(found: Answer) -> None:
    assert "nothing declares" not in found.sentence
