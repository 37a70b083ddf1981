"""Manifests that no API server has yet: what would refuse them, and what they ask."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from shared.admission.judgement import KnownQueue, Refused, known_queues, questions
from shared.contracts import codec
from shared.contracts.questions import FitRequest, LedgerAnswer, LedgerQueue
from shared.explanation.understanding import understand

NAMES = ("tutti", "volcano")
QUEUES = (
    KnownQueue(name="default", state="Open"),
    KnownQueue(name="closed", state="Closed"),
    KnownQueue(name="above", state="Open"),
    KnownQueue(name="below", parent="above", state="Open"),
    KnownQueue(name="long", state="Open", run_limit_max="4h"),
    KnownQueue(name="inside", parent="long", state="Open"),
    # As a queue that was stored while the webhook was away.
    KnownQueue(name="odd", state="Open", run_limit_max="soon"),
)
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  schedulerName: tutti
  minAvailable: 3
  queue: default
  tasks:
    - name: worker
      replicas: 3
      template: {spec: {containers: [{name: c, image: i}]}}
"""
CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
BATCH = """
apiVersion: batch/v1
kind: Job
metadata: {name: plain}
spec:
  parallelism: 2
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""


def asked(*texts: str, queues: Sequence[KnownQueue] | None = QUEUES) -> list[FitRequest]:
    documents = list(yaml.safe_load_all("\n---\n".join(texts)))
    return questions(documents, namespace="team", scheduler_names=NAMES, queues=queues).gangs


def refused(*texts: str) -> str:
    with pytest.raises(Refused) as found:
        asked(*texts)
    return "\n".join(found.value.errors)


def test_a_job_that_admission_takes_is_one_question() -> None:
    (one,) = asked(JOB)
    assert (one.group.namespace, one.group.name, len(one.pods)) == ("team", "train", 3)
    assert (one.earlier, one.queues) == ((), ())


def test_namespaces_of_the_manifests_are_part_of_each_question() -> None:
    named = "{scheduling.volcano.sh/queue-name: lane}"
    made = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: made, annotations: {named}}}}}"
    broken = "{apiVersion: v1, kind: Namespace, metadata: {name: odd, annotations: [a]}}"
    (one,) = asked(made, "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}", JOB)
    assert (one.complete, one.namespaces) == (True, ("made", "plain"))
    assert asked(JOB)[0].namespaces == ()
    assert "odd" in refused(broken, JOB)


def test_a_group_that_names_no_queue_is_in_that_of_its_namespace() -> None:
    named = "{scheduling.volcano.sh/queue-name: lane}"
    made = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: team, annotations: {named}}}}}"
    first, second = asked(made, JOB, JOB.replace("{name: ", "{name: second-"))
    assert [first.group.queue, second.group.queue] == ["lane", "lane"]
    assert second.earlier[0].group.queue == "lane"
    (other,) = asked(JOB)
    assert (other.group.queue, other.group.queue_of_namespace) == ("", True)


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("minAvailable: 3", "minAvailable: 5", "job 'minAvailable' should not be greater than"),
        ("minAvailable:", "minAvailableX:", 'unknown field "spec.minAvailableX"'),
        ("replicas: 3", "replica: 3", 'unknown field "spec.tasks[0].replica"'),
        ("replicas: 3", 'replicas: "three"', 'spec.tasks[0].replicas: Invalid value: "three"'),
        ("name: c,", "name: c, imagePullPolicyX: x,", "imagePullPolicyX"),
        ("schedulerName: tutti", "schedulerName: mine", "schedulerName mine is not served"),
        ("queue: default", "queue: nowhere", '"nowhere" not found'),
        ("queue: default", "queue: closed", "queue `closed` status is `Closed`"),
        ("queue: default", "queue: above", "can only submit job to leaf queue"),
        ("name: train", "name: {a: b}", "metadata.name: Invalid value"),
        (
            "name: train",
            "name: Train_1",
            'metadata.name: Invalid value: "Train_1": a lowercase RFC',
        ),
        ("name: train", "generateName: Train-", 'metadata.generateName: Invalid value: "Train-"'),
        ("{name: train}", "{}", "metadata.name: Required value"),
        ("metadata: {name: train}", "", "metadata.name: Required value"),
        ("{name: train}", "{name: train, label: {a: b}}", 'unknown field "metadata.label"'),
        ("v1alpha1", "v1beta1", 'supported values: "batch.volcano.sh/v1alpha1"'),
        ("tasks:", "plugins: {nonsense: []}\n  tasks:", "unable to find job plugin"),
    ],
)
def test_an_error_names_the_document_and_the_field(right: str, wrong: str, error: str) -> None:
    found = refused(JOB.replace(right, wrong))
    assert found.startswith("document 1, Job")
    assert error in found


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("parallelism: 2", "parallelismX: 2", 'unknown field "spec.parallelismX"'),
        ("parallelism: 2", "parallelism: two", 'spec.parallelism: Invalid value: "two"'),
        ("image: i", "imag: i", 'unknown field "spec.template.spec.containers[0].imag"'),
        ("batch/v1", "batch/v1beta1", 'apiVersion: Unsupported value: "batch/v1beta1"'),
        ("apiVersion: batch/v1", "", "apiVersion: Required value"),
        ("restartPolicy:", "schedulerName: mine, restartPolicy:", "schedulerName mine is not"),
    ],
)
def test_workloads_of_kubernetes_are_judged_by_their_schema(
    right: str, wrong: str, error: str
) -> None:
    assert error in refused(BATCH.replace(right, wrong))


@pytest.mark.parametrize("text", [BATCH, JOB], ids=["Kubernetes' own", "Volcano's"])
def test_an_amount_of_a_fraction_may_be_a_number(text: str) -> None:
    """The webhook makes a text of it in a Volcano Job, before the API server reads its schema."""
    assert len(asked(text.replace("image: i", "image: i, resources: {requests: {cpu: 0.5}}"))) == 1


def test_all_errors_of_all_documents_are_reported_at_once() -> None:
    found = refused(JOB.replace("minAvailable: 3", "minAvailable: 5"), BATCH.replace("spec:", "x:"))
    assert "document 1, Job train" in found
    assert 'document 2, Job plain: unknown field "x"' in found


@pytest.mark.parametrize("text", ["", "---\n---\n", CONFIG_MAP])
def test_manifests_without_a_gang_are_no_question(text: str) -> None:
    assert "declares no gang" in refused(text)


def test_an_object_that_is_twice_in_the_manifests_is_refused() -> None:
    pod = (
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: SPACE, annotations: "
        "{scheduling.k8s.io/group-name: g}}, spec: {schedulerName: tutti, "
        "containers: [{name: c, image: i}]}}"
    )
    error = 'metadata.name: Duplicate value: "p": document 1, Pod p has it'
    assert refused(pod.replace("SPACE", "team"), pod.replace("SPACE", '""')) == (
        f"document 2, Pod p: {error}"
    )
    assert len(asked(pod.replace("SPACE", "team"), pod.replace("SPACE", "other"))) == 2
    stem = JOB.replace("name: train", "generateName: train-")
    assert len(asked(stem, stem)) == 2


def test_names_of_other_kinds_are_left_to_the_api_server() -> None:
    role = CONFIG_MAP.replace("ConfigMap", "ClusterRole").replace("settings", "system:mine")
    assert len(asked(role, JOB)) == 1


def test_objects_beside_a_gang_are_passed_over() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"
    assert [one.group.name for one in asked(config, JOB)] == ["train"]


def test_a_queue_of_the_same_manifests_exists_for_their_gangs() -> None:
    queue = (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: fresh}\n"
        "spec: {weight: 1, capability: {cpu: 2}}"
    )
    (one,) = asked(queue, JOB.replace("queue: default", "queue: fresh"))
    assert [(each.name, each.capability) for each in one.queues] == [("fresh", (("cpu", 2000),))]


LIMITED = "{tutti.dev/run-limit: 5h, scheduling.volcano.sh/queue-name: inside}"
AT_MOST = (
    'metadata.annotations[tutti.dev/run-limit]: Invalid value: "5h": must be at most "4h", '
    "metadata.annotations[tutti.dev/run-limit-max] of queue `long`"
)


def test_a_run_limit_above_the_maximum_of_a_queue_is_refused() -> None:
    def job(queue: str, limit: str) -> str:
        notes = f"{{name: train, annotations: {{tutti.dev/run-limit: {limit}}}}}"
        return JOB.replace("{name: train}", notes).replace("default", queue)

    assert AT_MOST in refused(job("inside", "5h"))
    for queue, limit in (("inside", "4h"), ("default", "5h"), ("odd", "5h")):
        assert len(asked(job(queue, limit))) == 1
    made = (
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {weight: 1}, "
        "metadata: {name: fresh, annotations: {tutti.dev/run-limit-max: 1h}}}"
    )
    assert "of queue `fresh`" in refused(made, job("fresh", "2h"))


def test_the_maximum_of_a_queue_comes_from_the_planners_ledger() -> None:
    queue = LedgerQueue(name="long", exists=True, state="Open", run_limit_max="4h")
    (known,) = known_queues(LedgerAnswer(queues=(queue,)))
    assert known.run_limit_max == "4h"


def test_a_workload_whose_group_would_be_refused_for_its_run_limit_is_refused() -> None:
    limited = BATCH.replace("name: plain", f"name: plain, annotations: {LIMITED}")
    served = limited.replace("spec: {restart", "spec: {schedulerName: tutti, restart")
    assert AT_MOST in refused(served)
    assert len(asked(served.replace("5h", "3h"))) == 1


def test_queues_are_not_checked_while_they_are_unknown() -> None:
    assert asked(JOB.replace("queue: default", "queue: nowhere"), queues=None)


MISSPELT = BATCH.replace("{name: plain}", "{name: plain, annotations: {tutti.dev/gang: All}}")
MISSPELT_WORDS = (
    'annotation tutti.dev/gang of Job plain has no effect: "All" is neither "all" nor "none"'
)


def test_an_annotation_without_an_effect_is_named_in_every_judgement() -> None:
    job = yaml.safe_load(MISSPELT)
    found = questions([job], namespace="team", scheduler_names=NAMES, queues=QUEUES)
    assert found.warnings == [f"document 1, Job plain: {MISSPELT_WORDS}"]
    documents = [("document 1", job)]
    (one,) = understand(documents, namespace="team", scheduler_names=NAMES).objects
    assert MISSPELT_WORDS in one.ignored


def test_a_question_names_the_gangs_before_it_in_few_bytes() -> None:
    many = JOB.replace("replicas: 3", "replicas: 1500")
    first, second, third = asked(many, BATCH, JOB.replace("name: train", "name: last"))
    assert first.earlier == ()
    assert [one.group.name for one in second.earlier] == ["train"]
    assert [one.group.name for one in third.earlier] == ["train", "plain"]
    assert [one.count for each in third.earlier for one in each.pods] == [1500, 2]
    assert len(codec.encode(third)) < len(codec.encode(first)) / 10


def test_a_volcano_job_needs_volcanos_name_served_if_it_names_no_scheduler() -> None:
    documents = list(yaml.safe_load_all(JOB.replace("schedulerName: tutti", "maxRetry: 3")))
    with pytest.raises(Refused, match="schedulerName volcano is not served"):
        questions(documents, namespace="x", scheduler_names=("tutti",), queues=None)


def test_errors_are_bounded_however_long_names_are() -> None:
    tasks = [{"name": "x" * 5000, "replica": n} for n in range(500)]
    job: dict[str, Any] = yaml.safe_load(JOB)
    job["spec"]["tasks"] = tasks
    with pytest.raises(Refused) as found:
        questions([job] * 50, namespace="x", scheduler_names=NAMES, queues=None)
    assert len(str(found.value)) < 30_000
