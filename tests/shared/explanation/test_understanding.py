"""How manifests are understood: as the watcher, the webhook and the controllers read them."""

from typing import Any

import pytest
import yaml

from services.admission_webhook.core.opt_in import take_owned_pod, take_pod
from shared.admission.review import decode_review
from shared.contracts.visibility import ExplainedGang, ExplainedObject, ExplanationStatus
from shared.dialects.discovery import scheduler_names
from shared.dialects.manifests import flattened
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.explanation.understanding import understand
from tests.services.admission_webhook.reviews import review
from tests.support.golden import Golden

#: A label that names a gang of an API that no dialect reads.
UNREAD = next(
    one for one in pod_vocabulary().references.unread if one.place == "label" and one.names_group
)
GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train, namespace: team}
spec: {minMember: 2, queue: research, priorityClassName: high}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: train-0
  namespace: team
  annotations: {scheduling.k8s.io/group-name: train, volcano.sh/task-spec: worker}
spec: {schedulerName: SCHEDULER, containers: [{name: main}]}
---
"""
OPTED_IN = """
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {tutti.dev/schedule: "true"}}
---
"""


def report(*manifests: str) -> ExplanationStatus:
    documents = flattened(yaml.safe_load_all("".join(manifests)))
    return understand(documents, namespace="default", scheduler_names=scheduler_names())


def only_object(*manifests: str) -> ExplainedObject:
    (found,) = report(*manifests).objects
    return found


def only_gang(*manifests: str) -> ExplainedGang:
    (found,) = report(*manifests).gangs
    return found


def pod(scheduler: str = "tutti", **marks: Any) -> str:
    found = yaml.safe_load(POD.strip().removesuffix("---").replace("SCHEDULER", scheduler))
    found["metadata"] |= marks
    return yaml.safe_dump(found) + "\n---\n"


def test_a_group_and_its_pods_are_one_gang() -> None:
    both = pod() + pod().replace("train-0", "train-1")
    gang = only_gang(GROUP, both)
    assert (gang.title, gang.minimum, gang.members) == ("team/train", 2, 2)
    assert (gang.queue, gang.priority_class) == ("research", "high")
    assert [(one.role, one.members) for one in gang.roles] == [("worker", 2)]
    assert gang.scheduled
    assert gang.missing == ()


def test_gangs_without_objects_are_explained_by_what_their_pods_declare(golden: Golden) -> None:
    """Of gangs that start together each pod has its own gang's minimum."""
    prefix = "gang.scheduling.koordinator.sh/"
    listed = '["team/servers", "team/workers"]'
    pods = [
        pod(annotations={f"{prefix}name": name, f"{prefix}min-available": least} | together)
        for name, least in (("workers", "3"), ("servers", "2"))
        for together in ({f"{prefix}groups": listed},)
    ]
    gang = only_gang(*pods)
    assert (gang.title, gang.declared_by) == ("team/servers,workers", "its pods")
    assert (gang.minimum, gang.members) == (5, 2)
    assert [(one.role, one.minimum) for one in gang.roles] == [("servers", 2), ("workers", 3)]
    golden(*gang.missing)


def test_pods_of_a_gang_that_no_pod_declares_wait_for_the_one_that_does() -> None:
    executor = pod(
        labels={"yunikorn.apache.org/app-id": "spark"},
        annotations={"yunikorn.apache.org/task-group-name": "executor"},
    )
    (missing,) = only_gang(executor).missing
    assert missing.startswith("no pod in these files declares this gang of yunikorn")


def test_pods_without_their_group_wait_for_it() -> None:
    gang = only_gang(pod())
    assert gang.minimum is None
    assert "its group object is not in these files" in gang.missing[0]


def test_a_group_without_its_pods_waits_for_them(golden: Golden) -> None:
    golden(*only_gang(GROUP).missing)


def test_the_default_scheduler_is_named_with_the_remedies_unless_the_namespace_opted_in(
    golden: Golden,
) -> None:
    given = pod("default-scheduler")
    (scheduling,) = report(GROUP, given).objects[1].scheduling
    assert not scheduling.taken
    assert "set schedulerName: tutti, or label the namespace" in scheduling.sentence
    found = report(GROUP, given)
    assert not found.gangs[0].scheduled
    golden(found.gangs[0].missing[0])
    opted = report(OPTED_IN, GROUP, given)
    assert opted.objects[2].scheduling[0].taken
    assert opted.gangs[0].scheduled


@pytest.mark.parametrize("scheduler", ["tutti", "volcano", "default-scheduler", "elsewhere"])
@pytest.mark.parametrize("namespace", ["team", "kube-system"])
@pytest.mark.parametrize("notes", [{"scheduling.k8s.io/group-name": "train"}, {}], ids=str)
def test_it_is_taken_where_the_webhook_takes_it_or_the_name_is_served(
    scheduler: str, namespace: str, notes: dict[str, str]
) -> None:
    text = pod(scheduler, annotations=notes, namespace=namespace)
    found = report(OPTED_IN.replace("team", namespace), text)
    manifest = next(iter(yaml.safe_load_all(text)))
    request = decode_review(review(manifest, namespace=namespace))
    patched = bool(take_pod(request, scheduler_names()).patch)
    (scheduling,) = found.objects[1].scheduling
    assert scheduling.taken == (patched or scheduler in scheduler_names())


def test_of_two_groups_of_one_name_the_one_counts_that_the_planner_prefers() -> None:
    other = GROUP.replace("scheduling.volcano.sh/v1beta1", "scheduling.sigs.dev/v1alpha2")
    other = other.replace("minMember: 2", "minMember: 7")
    for scheduler in ("tutti", "kube-batch"):
        gang = only_gang(GROUP, other, pod(scheduler))
        assert gang.minimum == (7 if scheduler == "kube-batch" else 2)
        assert "gets the condition DuplicateGroup" in gang.ignored[0]


def test_a_declaration_that_loses_and_one_that_is_not_read_are_listed() -> None:
    labels = {UNREAD.key: "other"}
    found = only_object(pod(labels=labels))
    assert [(one.place, one.dialect, one.counts) for one in found.declared] == [
        ("annotation scheduling.k8s.io/group-name", "group_name", True),
        (UNREAD.title, "", False),
    ]
    assert "name two gangs" in found.missing[0]
    assert not only_gang(pod(labels=labels)).scheduled


def test_fields_without_effect_in_a_dialect_are_listed(golden: Golden) -> None:
    group = GROUP.replace("minMember: 2", "minMember: 2, minTaskMember: {a: 1}, unknown: 3")
    golden(*report(group).objects[0].ignored)
    old = group.replace("scheduling.volcano.sh/v1beta1", "scheduling.sigs.dev/v1alpha2")
    golden(*report(old).objects[0].ignored)


def test_ignored_fields_and_marks_are_listed_with_the_reasons() -> None:
    kai = GROUP.replace("scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2")
    kai = kai.replace("minMember: 2", "minMember: 2, markUnschedulable: true")
    (reason,) = only_object(kai).ignored
    assert reason.startswith("spec.markUnschedulable: the pods' conditions always say why")
    marks = {"kueue.x-k8s.io/queue-name": "team"}
    (reason,) = only_object(pod(labels=marks)).ignored
    assert reason.startswith("metadata.labels[kueue.x-k8s.io/queue-name]: Kueue reads it")
    job = yaml.safe_load(PLAIN_JOB)
    job["spec"]["template"]["metadata"] = {"labels": marks}
    assert only_object(yaml.safe_dump(job)).ignored == (reason,)


def test_minima_of_roles_that_are_not_in_force_are_explained() -> None:
    group = GROUP.replace("minMember: 2", "minMember: 2, minTaskMember: {worker: 3}")
    gang = only_gang(group, pod())
    assert gang.roles[0].minimum == 0
    assert "larger than the gang's minimum, 2" in gang.ignored[0]


VOLCANO_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: fit, namespace: team}
spec:
  queue: research
  plugins: {pytorch: [], nonsense: []}
  tasks:
  - {name: master, replicas: 1, template: {spec: {containers: [{name: c}]}}}
  - {name: worker, replicas: 3, template: {spec: {containers: [{name: c}]}}}
"""


def test_a_volcano_job_is_read_with_its_defaults_and_plugins(golden: Golden) -> None:
    gang, found = only_gang(VOLCANO_JOB), only_object(VOLCANO_JOB)
    assert (gang.minimum, gang.members, gang.queue) == (4, 4, "research")
    assert [(one.role, one.members, one.minimum) for one in gang.roles] == [
        ("master", 1, 1),
        ("worker", 3, 3),
    ]
    assert found.scheduling[0].scheduler == "volcano"
    assert "gets the plugin svc, which another of its plugins needs" in found.facts
    golden(*(one for one in found.missing if "plugin" in one))


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, annotations: {NOTE}}
spec:
  replicas: 4
  template: {spec: {schedulerName: tutti, containers: [{name: c}]}}
"""


def test_pods_of_a_workload_are_a_gang_only_if_an_annotation_says_so(golden: Golden) -> None:
    plain = DEPLOYMENT.replace("NOTE", "")
    assert report(plain).gangs == ()
    assert "each pod is placed on its own" in only_object(plain).facts[-1]
    gang = only_gang(DEPLOYMENT.replace("NOTE", 'scheduling.volcano.sh/group-min-member: "3"'))
    assert (gang.minimum, gang.members) == (3, 4)
    golden(gang.declared_by)


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: all, annotations: {tutti.dev/gang: all}}
spec:
  parallelism: 3
  template: {spec: {schedulerName: tutti, containers: [{name: c}]}}
"""


def test_a_kubernetes_job_may_be_one_gang() -> None:
    assert only_gang(JOB).minimum == 3
    assert report(JOB.replace("tutti.dev/gang", "other")).gangs == ()


JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      metadata: {annotations: {tutti.dev/gang: all}}
      spec: {parallelism: 3, template: {spec: {schedulerName: tutti, containers: [{name: c}]}}}
"""


def test_pods_of_a_volcano_job_keep_the_scheduler_name_of_their_template() -> None:
    """The controller sets the Job's name only where the template has none."""
    job = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  schedulerName: tutti
  tasks:
    - replicas: 2
      template: {spec: {schedulerName: default-scheduler, containers: [{name: c, image: i}]}}
"""
    assert not report(job).complete
    assert report(job.replace("schedulerName: default-scheduler, ", "")).complete


def test_an_object_that_is_twice_in_the_files_is_reported() -> None:
    _, second = report(pod(), pod()).objects
    assert any("Duplicate value" in line for line in second.missing)


@pytest.mark.parametrize("jobs", ["5", "1.5", "{a: b}", "[x]", "text"])
def test_a_job_set_whose_jobs_are_no_list_is_reported(jobs: str) -> None:
    found = only_object(
        "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, "
        f"spec: {{replicatedJobs: {jobs}}}}}"
    )
    assert any("cannot be read: " in line and "replicatedJobs" in line for line in found.missing)


def test_the_jobs_of_a_job_set_are_read_one_by_one() -> None:
    gang = only_gang(JOB_SET)
    assert (gang.minimum, gang.members) == (3, 3)
    fact = "each of 2 Jobs (workers) is read by itself, with 3 pods"
    assert fact in only_object(JOB_SET).facts


WHOLE_SET = JOB_SET.replace("name: set}", "name: set, annotations: {tutti.dev/gang: all}}")


def test_a_job_set_that_asks_for_it_is_one_gang(golden: Golden) -> None:
    gang = only_gang(WHOLE_SET)
    assert (gang.title, gang.minimum, gang.members) == ("default/podgroup-jobset-set", 6, 6)
    golden(gang.declared_by)
    assert gang.scheduled
    hint = "the annotation tutti.dev/gang: all on it would make one gang of all its pods"
    assert hint in only_object(JOB_SET).facts
    assert hint not in only_object(WHOLE_SET).facts


@pytest.mark.parametrize(
    ("of_pods", "queue"), [("", "jobs"), ("metadata: {annotations: {QUEUE: pods}}, ", "pods")]
)
def test_the_queue_of_a_job_is_that_of_its_pods_else_its_own(of_pods: str, queue: str) -> None:
    """As the controller chooses it, and `tutti fits`."""
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {tutti.dev/gang: all, QUEUE: jobs}}
spec:
  parallelism: 2
  completions: 2
  template: {OF_PODSspec: {schedulerName: tutti, containers: [{name: c}]}}
"""
    text = job.replace("OF_PODS", of_pods).replace("QUEUE", "scheduling.volcano.sh/queue-name")
    assert only_gang(text).queue == queue


LEADERS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: lws, annotations: {tutti.dev/gang: all, scheduling.volcano.sh/queue-name: q}}
spec:
  replicas: 2
  startupPolicy: LeaderReady
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {schedulerName: tutti, containers: [{name: c}]}}
"""


def test_a_replica_of_a_leader_worker_set_is_a_gang_whose_workers_come_later() -> None:
    gang = only_gang(LEADERS)
    assert (gang.minimum, gang.members, gang.queue) == (1, 4, "q")
    assert gang.declared_by.endswith("for each of its 2 replicas; this is the first")
    fact = "3 pods (worker) are created later: capacity is reserved for them"
    assert fact in only_object(LEADERS).facts


ASKS = """
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {LABELS}}
---
"""
IT_ASKS = ASKS.replace("LABELS", "tutti.dev/gang: all")
IT_ASKS_AND_OPTED_IN = ASKS.replace("LABELS", 'tutti.dev/gang: all, tutti.dev/schedule: "true"')
PLAIN_SET = JOB_SET.replace("metadata: {annotations: {tutti.dev/gang: all}}", "metadata: {}")
PLAIN_JOB = JOB.replace(", annotations: {tutti.dev/gang: all}", "")


def test_a_namespace_asks_for_gangs_of_objects_that_do_not_say_otherwise() -> None:
    assert [one.minimum for one in report(IT_ASKS, PLAIN_SET).gangs] == [6]
    assert [one.minimum for one in report(IT_ASKS, PLAIN_JOB).gangs] == [3]
    declines = PLAIN_SET.replace("name: set}", "name: set, annotations: {tutti.dev/gang: none}}")
    assert report(IT_ASKS, declines).gangs == ()
    assert report(IT_ASKS, JOB.replace("gang: all", "gang: none")).gangs == ()
    assert [one.minimum for one in report(IT_ASKS, JOB_SET).gangs] == [3], "its Jobs say it"
    assert report(PLAIN_SET).gangs == ()


@pytest.mark.parametrize("manifest", [PLAIN_SET, PLAIN_JOB], ids=["an operator's", "a Job"])
def test_pods_of_such_objects_are_taken_where_the_namespace_opted_in_too(manifest: str) -> None:
    text = manifest.replace("schedulerName: tutti, ", "")
    (gang,) = report(IT_ASKS_AND_OPTED_IN, text).gangs
    assert gang.scheduled
    (scheduling,) = report(IT_ASKS, text).objects[1].scheduling
    assert not scheduling.taken
    assert scheduling.sentence.endswith(
        "or label the namespace tutti.dev/schedule=true tutti.dev/gang=all"
    )


@pytest.mark.parametrize("labels", [IT_ASKS, IT_ASKS_AND_OPTED_IN], ids=["asks", "opted in too"])
@pytest.mark.parametrize("scheduler", ["default-scheduler", "elsewhere"])
@pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
def test_an_owned_pod_is_taken_where_the_webhook_takes_it(
    labels: str, scheduler: str, kind: str
) -> None:
    version = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}[kind]
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": True}
    text = pod(scheduler, annotations={}, ownerReferences=[owner], namespace="default")
    manifest = next(iter(yaml.safe_load_all(text)))
    patched = bool(take_owned_pod(decode_review(review(manifest)), scheduler_names()).patch)
    (scheduling,) = report(labels, text).objects[1].scheduling
    assert scheduling.taken == (patched and labels == IT_ASKS_AND_OPTED_IN)


def test_pods_that_declare_a_gang_keep_it_whatever_their_owner_asks_for() -> None:
    own = "workerTemplate: {metadata: {annotations: {scheduling.k8s.io/group-name: own}}, spec:"
    gangs = report(LEADERS.replace("workerTemplate: {spec:", own)).gangs
    assert {one.title: one.members for one in gangs} == {
        "default/podgroup-leaderworkerset-lws-0": 0,
        "default/own": 4,
    }


PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: pt}
spec:
  runPolicy: {schedulingPolicy: {minAvailable: 2, queue: research}}
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: c}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: c}]}}}
"""


def test_an_operators_job_is_the_gang_that_the_operator_would_declare() -> None:
    gang = only_gang(PYTORCH)
    assert (gang.minimum, gang.members, gang.queue) == (2, 3, "research")
    assert "--gang-scheduler-name=volcano" in gang.declared_by


def test_other_objects_declare_nothing(golden: Golden) -> None:
    found = only_object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    golden(*found.facts)
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}}"
    found = only_object(queue)
    assert (found.title, found.facts) == ("Queue q", ("read as queue (dialect volcano)",))


@pytest.mark.parametrize(
    "manifest",
    [
        "{kind: Pod, apiVersion: v1, metadata: x}",
        "{kind: Pod, apiVersion: v1, spec: 5}",
        "{kind: Namespace, apiVersion: v1, metadata: {labels: 5}}",
        "{kind: PodGroup, apiVersion: scheduling.volcano.sh/v1beta1, spec: 5}",
        "{kind: Job, apiVersion: batch/v1, spec: {template: 5}}",
        "{kind: Job, apiVersion: batch.volcano.sh/v1alpha1, spec: {tasks: 5, plugins: 3}}",
        "{kind: Deployment, apiVersion: apps/v1, spec: {template: {metadata: 5, spec: 6}}}",
        "{kind: JobSet, spec: {replicatedJobs: [{name: x, template: 5}]}}",
        "{kind: X, spec: {aReplicaSpecs: {x: {template: {metadata: []}}}, runPolicy: 5}}",
    ],
)
def test_values_of_the_wrong_type_are_reported(manifest: str) -> None:
    assert only_object(manifest).missing


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        ("{mode: hard, highestTierAllowed: 2}", "inside one HyperNode of at most tier 2"),
        ("{mode: soft}", "inside one HyperNode, if possible"),
    ],
)
def test_the_topology_is_shown_in_words(topology: str, words: str) -> None:
    group = GROUP.replace("minMember: 2", f"minMember: 2, networkTopology: {topology}")
    assert only_gang(group).topology == words


TREE = """
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: NAME, namespace: team}
spec:
  workloadRef: {workloadName: w, templateName: t}
  parentCompositePodGroupName: PARENT
  schedulingPolicy: {gang: {minGroupCount: 2}}
  schedulingConstraints: {topology: [{key: zone}]}
---
"""
PART = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: NAME, namespace: team}
spec:
  workloadRef: {workloadName: w, templateName: t}
  parentCompositePodGroupName: PARENT
  schedulingPolicy: {gang: {minCount: 1}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME-0, namespace: team}
spec: {schedulerName: tutti, schedulingGroup: {podGroupName: NAME}, containers: [{name: main}]}
---
"""


def tree(text: str, name: str, parent: str = '""') -> str:
    return text.replace("NAME", name).replace("PARENT", parent)


def test_a_tree_of_groups_is_one_gang_with_its_nested_groups(golden: Golden) -> None:
    objects = (
        tree(PART, "leader", "all"),
        tree(PART, "first", "inner"),
        tree(PART, "second", "inner"),
        tree(TREE, "inner", "all"),
        tree(TREE, "all"),
    )
    found = report(*objects)
    (gang,) = found.gangs
    assert (gang.title, gang.minimum, gang.members, gang.scheduled) == ("team/all", 3, 3, True)
    golden(gang.declared_by)
    assert gang.missing == ()
    inside = "inside one value of the node label zone"
    assert [
        (one.level, one.name, one.of, one.count, one.minimum, one.topology) for one in gang.parts
    ] == [
        (1, "all", "groups", 2, 2, inside),
        (2, "inner", "groups", 2, 2, inside),
        (3, "first", "pods", 1, 1, ""),
        (3, "second", "pods", 1, 1, ""),
        (2, "leader", "pods", 1, 1, ""),
    ]
    assert {one.gangs for one in found.objects} == {("team/all",)}


def test_what_a_tree_waits_for_is_named(golden: Golden) -> None:
    gang = only_gang(tree(PART, "leader", "all"), tree(PART, "other", "all"))
    assert gang.title == "team/all"
    golden(*gang.missing)
    gang = only_gang(tree(PART, "leader", "all"), tree(TREE, "all"))
    golden(*gang.missing)
    gang = only_gang(tree(PART, "leader", "a"), tree(TREE, "a", "b"), tree(TREE, "b", "a"))
    assert not gang.scheduled
    assert any("its parents form a cycle: a → b → a" in one for one in gang.missing), gang.missing


def test_a_duration_above_the_built_in_ceiling_is_listed_with_both_values(golden: Golden) -> None:
    note = 'annotations: {tutti.dev/reserve-seconds: "999999999"}'
    gang = only_gang(GROUP.replace("namespace: team}", f"namespace: team, {note}}}"))
    golden(*gang.ignored)
