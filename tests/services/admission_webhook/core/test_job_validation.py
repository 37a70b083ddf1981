"""Volcano Jobs: every rule about minAvailable, and the queue, each with its field's path."""

import time

import pytest

from shared.admission import names
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_task,
    judged,
    reference_objects,
    review,
    texts,
    volcano_queue,
)
from tests.support.golden import Golden

QUEUES = reference_objects(
    volcano_queue("field", state="Open"),
    volcano_queue("fresh"),
    volcano_queue("shut", state="Closed"),
    volcano_queue("trunk", state="Open"),
    volcano_queue("leaf", parent="trunk", state="Open"),
)

GOOD = [
    pytest.param(a_job(a_task(minAvailable=1), minAvailable=1), id="all minima at their limit"),
    pytest.param(a_job(a_task(replicas=3, minAvailable=0), minAvailable=0), id="no minimum at all"),
    pytest.param(a_job(a_task("a"), a_task("b")), id="no minimum given"),
    pytest.param(a_job(a_task(minAvailable=None)), id="a null minimum is none"),
    pytest.param(a_job(a_task(), queue="field"), id="an open queue"),
    pytest.param(a_job(a_task(), queue="fresh"), id="a queue whose state is not written yet"),
    pytest.param(
        a_job(a_task(), queue="default"), id="the default queue, of which no object exists"
    ),
    pytest.param(a_job(a_task(), queue="leaf"), id="a leaf of the tree"),
]

BAD: list[tuple[str, Object, list[str]]] = [
    ("no tasks", a_job(), ["spec.tasks: Required value: No task specified in job spec"]),
    (
        "no spec",
        a_job() | {"spec": None},
        ["spec.tasks: Required value: No task specified in job spec"],
    ),
    (
        "a negative minimum",
        a_job(a_task(), minAvailable=-1),
        ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "a minimum above the sum of replicas",
        a_job(a_task("a", 2), a_task("b", 3), minAvailable=6),
        [
            "spec.minAvailable: Invalid value: 6: "
            "job 'minAvailable' should not be greater than total replicas in tasks (5)"
        ],
    ),
    (
        "more pods than the controller lists",
        a_job(a_task("a", 100_000), a_task("b", 1), minAvailable=1),
        ["spec.tasks: Invalid value: 100001: replicas must not add up to more than 100000 pods"],
    ),
    (
        "a task's minimum above its replicas",
        a_job(a_task("a", 2, minAvailable=3)),
        [
            "spec.tasks[0].minAvailable: Invalid value: 3: "
            "'minAvailable' is greater than 'replicas' in task: a, job: trial"
        ],
    ),
    (
        "a negative minimum of a task",
        a_job(a_task(minAvailable=-1)),
        ["spec.tasks[0].minAvailable: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "a task without replicas that needs one",
        a_job({**a_task("a", None), "minAvailable": 1}),
        [
            "spec.tasks[0].minAvailable: Invalid value: 1: "
            "'minAvailable' is greater than 'replicas' in task: a, job: trial"
        ],
    ),
    (
        "three tasks of one name",
        a_job(a_task("a"), a_task("a"), a_task("b"), a_task("a")),
        [
            "spec.tasks[1].name: Duplicate value: duplicated task name a",
            "spec.tasks[3].name: Duplicate value: duplicated task name a",
        ],
    ),
    (
        "a task's name that is no label",
        a_job(a_task("A.b")),
        [f'spec.tasks[0].name: Invalid value: "A.b": {names.label("A.b")}'],
    ),
    (
        "a queue that does not exist",
        a_job(a_task(), queue="nowhere"),
        [
            'spec.queue: Invalid value: "nowhere": '
            'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found'
        ],
    ),
    (
        "a closed queue",
        a_job(a_task(), queue="shut"),
        [
            'spec.queue: Invalid value: "shut": '
            "can only submit job to queue with state `Open`, queue `shut` status is `Closed`"
        ],
    ),
    (
        "the root queue",
        a_job(a_task(), queue="root"),
        ['spec.queue: Invalid value: "root": can not submit job to root queue'],
    ),
    (
        "a queue with queues below it",
        a_job(a_task(), queue="trunk"),
        [
            'spec.queue: Invalid value: "trunk": '
            "can only submit job to leaf queue, queue `trunk` has 1 child queues"
        ],
    ),
    (
        "everything at once",
        a_job(a_task("a", -1), a_task("a", "two", minAvailable=2.5), minAvailable=9, queue="shut"),
        [
            "spec.tasks[0].replicas: Invalid value: -1: must be greater than or equal to 0",
            'spec.tasks[1].replicas: Invalid value: "two": must be an integer',
            "spec.tasks[1].minAvailable: Invalid value: 2.5: must be an integer",
            "spec.tasks[1].name: Duplicate value: duplicated task name a",
            "spec.minAvailable: Invalid value: 9: "
            "job 'minAvailable' should not be greater than total replicas in tasks (0)",
            'spec.queue: Invalid value: "shut": '
            "can only submit job to queue with state `Open`, queue `shut` status is `Closed`",
        ],
    ),
    (
        "tasks that are no array",
        a_job() | {"spec": {"tasks": {"a": 1}}},
        ["spec.tasks: Invalid value: {'a': 1}: must be an array"],
    ),
    (
        "a task that is no object, and a minimum beyond int32",
        a_job(a_task(), "b", minAvailable=2**31),  # type: ignore[arg-type]  # that it is none
        [
            "spec.minAvailable: Invalid value: 2147483648: "
            "must be less than or equal to 2147483647",
            'spec.tasks[1]: Invalid value: "b": must be an object',
            "spec.minAvailable: Invalid value: 2147483648: "
            "job 'minAvailable' should not be greater than total replicas in tasks (1)",
        ],
    ),
]


@pytest.mark.parametrize("job", GOOD)
def test_a_job_is_admitted_with(job: Object) -> None:
    assert texts(job, QUEUES) == []


@pytest.mark.parametrize(("job", "errors"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_job_is_refused_for(job: Object, errors: list[str]) -> None:
    assert texts(job, QUEUES) == errors


def test_an_update_is_held_to_the_minima_but_not_to_its_queue(golden: Golden) -> None:
    old = a_job(a_task("a", 3, minAvailable=3), minAvailable=3, queue="shut")
    new = a_job(a_task("a", 2, minAvailable=3), minAvailable=3, queue="shut")
    errors = judged(review(new, old=old), QUEUES).errors
    assert [error.path for error in errors] == ["spec.tasks[0].minAvailable", "spec.minAvailable"]
    golden(*(error.text for error in errors))


def test_a_job_that_came_in_broken_can_still_be_labelled() -> None:
    old = a_job(a_task("a", 1), minAvailable=3)
    new = a_job(a_task("a", 1), minAvailable=3)
    new["metadata"]["labels"] = {"seen": "yes"}
    assert texts(new, QUEUES, old=old) == []


@pytest.mark.parametrize(
    ("queue", "warnings"), [("nowhere", 1), ("default", 0)], ids=["a named queue", "the default"]
)
def test_without_queues_the_queue_passes_with_a_word_about_it(queue: str, warnings: int) -> None:
    verdict = judged(review(a_job(a_task(), queue=queue)), reference_objects(known=False))
    assert verdict.allowed
    assert len(verdict.warnings) == warnings


def test_a_queue_that_is_missed_is_named_so_that_one_can_wait_for_it() -> None:
    assert judged(review(a_job(a_task(), queue="nowhere")), QUEUES).missing_queue == "nowhere"
    assert judged(review(a_job(a_task(), queue="shut")), QUEUES).missing_queue == ""


def test_a_job_of_ten_thousand_mistakes_is_judged_in_the_time_of_its_size() -> None:
    """Each of these took minutes: every duplicate was looked for among all tasks, every wrong word
    compared with all names. Now the whole takes a second of CPU.
    """
    words = [f"not-a-task-{number}" for number in range(2_000)]
    policies = [{"event": f"Event{number}", "action": "AbortJobs"} for number in range(5_000)]
    job = a_job(
        a_task("first", dependsOn={"name": words}),
        *({"name": f"task-{number // 2}", "replicas": 1} for number in range(20_000)),
        policies=policies,
        plugins={f"plug-{number}": [] for number in range(5_000)},
    )
    began_s = time.process_time()
    verdict = judged(review(job))
    assert time.process_time() - began_s < 10
    messages = [error.message for error in verdict.errors]
    assert sum("duplicated task name" in one for one in messages) == 10_000
    assert 0 < sum("did you mean" in one for one in messages) <= 10
