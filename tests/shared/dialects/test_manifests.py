"""Which gangs manifests declare, and which pods they would have."""

from typing import Any

import msgspec
import pytest
import yaml

from shared.contracts.questions import FitRequest
from shared.dialects import manifests
from shared.dialects.manifests import InvalidManifest, expand, flattened
from shared.model.objects import Shape


def asked(text: str) -> list[FitRequest]:
    placed = flattened(yaml.safe_load_all(text))
    return expand(placed, namespace="team", scheduler_names=("kube-batch",)).questions


def requests(one: FitRequest) -> list[dict[str, int]]:
    shapes = [msgspec.msgpack.decode(pod.shape, type=Shape) for pod in one.pods]
    return [dict(shape.requests) for shape in shapes]


def test_a_tfjob_is_a_gang_of_all_its_replicas() -> None:
    (one,) = asked(f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: train}}
spec:
  runPolicy: {{schedulingPolicy: {{queue: research}}}}
  tfReplicaSpecs:
    Worker: {{replicas: 3, template: {{{_inline()}}}}}
    PS: {{template: {{{_inline()}}}}}
""")
    assert (one.group.namespace, one.group.name, one.group.min_member) == ("team", "train", 4)
    assert one.group.queue == "research"
    assert sorted(pod.role for pod in one.pods) == ["ps", "worker", "worker", "worker"]
    assert requests(one) == [{"cpu": 2000, "pods": 1}] * 4, "limits are requests"


def _inline() -> str:
    return 'spec: {containers: [{name: c, resources: {limits: {cpu: "2"}}}]}'


@pytest.mark.parametrize(
    ("text", "size", "count"),
    [
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3, template: {T}}", 3, 3),
        ("apiVersion: apps/v1\nkind: StatefulSet\nspec: {template: {T}}", 1, 1),
        (
            "apiVersion: batch/v1\nkind: Job\n"
            "spec: {parallelism: 5, completions: 2, template: {T}}",
            2,
            2,
        ),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n  minAvailable: 2\n"
            "  tasks: [{name: a, replicas: 3, template: {T}}, {replicas: 1, template: {T}}]",
            2,
            4,
        ),
        (
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:\n"
            "  - {name: w, replicas: 2, template: {spec: {parallelism: 3, template: {T}}}}",
            6,
            6,
        ),
    ],
    ids=["deployment", "statefulset", "job", "vcjob", "jobset"],
)
def test_workloads_are_expanded_as_their_controllers_would(
    text: str, size: int, count: int
) -> None:
    (one,) = asked(text.replace("{T}", "{" + _inline() + "}"))
    assert (one.group.min_member, len(one.pods)) == (size, count)
    assert len({pod.uid for pod in one.pods}) == count


def test_pods_join_the_group_that_they_name_and_others_stand_alone() -> None:
    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    documents: list[Any] = [
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"p{index}",
                        "annotations": {"scheduling.k8s.io/group-name": "g"},
                    },
                    "spec": pod,
                }
                for index in range(2)
            ],
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"minMember": 2},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": pod},
    ]
    found = expand(flattened(documents), namespace="team", scheduler_names=()).questions
    assert [(one.group.name, one.group.min_member, len(one.pods)) for one in found] == [
        ("g", 2, 2),
        ("alone", 1, 1),
    ]
    assert found[0].group.dialect == "volcano"


@pytest.mark.parametrize("kind", ["batch/v1 Job", "apps/v1 Deployment", "apps/v1 StatefulSet"])
@pytest.mark.parametrize(
    ("group", "names"),
    [
        (
            "scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, "
            "spec: {minMember: 3}",
            "metadata: {annotations: {scheduling.k8s.io/group-name: g}}, ",
        ),
        (
            "scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, "
            "spec: {minMember: 3}",
            "metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}, ",
        ),
    ],
    ids=["Volcano", "coscheduling"],
)
def test_pods_of_workloads_join_the_group_that_their_template_names(
    kind: str, group: str, names: str
) -> None:
    """Also if the workload has the group's name, and with pods of another workload."""
    version, _, name = kind.partition(" ")
    head = f"apiVersion: {version}\nkind: {name}\nmetadata: {{name: NAME}}\n"
    counts = "spec: {replicas: COUNT, parallelism: COUNT, template: {"
    workload = f"{head}{counts}{names}{_inline()}}}}}"
    first = workload.replace("NAME", "g").replace("COUNT", "2")
    second = workload.replace("NAME", "h").replace("COUNT", "1")
    (one,) = asked(f"{first}\n---\n{{apiVersion: {group}}}\n---\n{second}")
    assert (one.group.name, one.group.min_member, len(one.pods)) == ("g", 3, 3)
    assert {pod.group_name for pod in one.pods} == {"g"}
    assert len({pod.uid for pod in one.pods}) == 3
    (alone,) = asked(second)
    assert (alone.group.name, alone.group.dialect, alone.pods[0].group_name) == ("g", "", "g")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "document 1: must be an object"),
        ("apiVersion: apps/v1\nkind: Deployment", "have no containers"),
        (
            "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3000, template: {T}}",
            "at most 2000",
        ),
        ("apiVersion: other/v1\nkind: PodGroup", "no dialect reads PodGroups of other"),
        ("kind: List\nitems: [1]", "document 1: items: must be objects"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(InvalidManifest, match=words):
        asked(text.replace("{T}", "{" + _inline() + "}"))


def test_a_short_text_cannot_ask_for_pods_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\n"
    one = f"{head}spec: {{replicas: 20, template: {{{_inline()}}}}}"
    documents = "\n---\n".join([one] * 3)
    assert len(asked(documents)) == 3
    monkeypatch.setattr(manifests, "PODS_IN_ALL_MAX", 59)
    with pytest.raises(InvalidManifest, match=r"document 3, Deployment d: .* more than 59 pods"):
        asked(documents)


def test_a_group_has_as_many_pods_at_most_as_a_question_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifests, "FIT_PODS_MAX", 1)
    mark = "annotations: {scheduling.k8s.io/group-name: g}"
    pods = (
        f"kind: Pod\napiVersion: v1\nmetadata: {{name: p{n}, {mark}}}\n{_inline()}"
        for n in range(2)
    )
    with pytest.raises(InvalidManifest, match="team/g: it has 2 pods, at most 1 are supported"):
        asked("\n---\n".join(pods))


def test_pods_that_declare_their_group_are_the_gang_that_they_declare() -> None:
    mark = (
        "labels: {kueue.x-k8s.io/pod-group-name: train}, "
        'annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}'
    )
    pods = [f"kind: Pod\nmetadata: {{name: p{index}, {mark}}}\n{_inline()}" for index in range(2)]
    (one,) = asked("\n---\n".join(pods))
    assert (one.group.dialect, one.group.name, one.group.min_member) == ("kueue", "train", 2)
    assert len(one.pods) == 2


def test_gangs_of_two_apis_with_one_name_are_asked_about_one_by_one() -> None:
    group = "kind: PodGroup\nmetadata: {name: g}"
    native = f"apiVersion: scheduling.k8s.io/v1beta1\n{group}"
    named = "kind: Pod\nmetadata: {name: p, annotations: {scheduling.k8s.io/group-name: g}}"
    inner = _inline().removeprefix("spec: {")
    found = asked(
        f"{native}\nspec: {{schedulingPolicy: {{gang: {{minCount: 1}}}}}}\n---\n"
        f"kind: Pod\nmetadata: {{name: q}}\n"
        f"spec: {{schedulingGroup: {{podGroupName: g}}, {inner}\n---\n"
        f"apiVersion: scheduling.volcano.sh/v1beta1\n{group}\nspec: {{minMember: 1}}\n---\n"
        f"{named}\n{_inline()}"
    )
    assert sorted((one.group.dialect, [pod.name for pod in one.pods]) for one in found) == [
        ("kubernetes", ["q"]),
        ("volcano", ["p"]),
    ]


TREE = """
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: all}
spec:
  workloadRef: {workloadName: w, templateName: t}
  schedulingPolicy: {gang: {minGroupCount: 2}}
"""
PART = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: PART}
spec:
  workloadRef: {workloadName: w, templateName: t}
  parentCompositePodGroupName: all
  schedulingPolicy: {gang: {minCount: 2}}
---
apiVersion: v1
kind: Pod
metadata: {name: PART-0}
spec: {schedulingGroup: {podGroupName: PART}, containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: PART-1}
spec: {schedulingGroup: {podGroupName: PART}, containers: [{name: main}]}
"""
PARTS = "---".join(PART.replace("PART", name) for name in ("leader", "workers"))


def test_a_tree_of_groups_is_one_gang_in_any_order() -> None:
    for text in (f"{TREE}---{PARTS}", f"{PARTS}---{TREE}"):
        (one,) = asked(text)
        group = one.group
        assert (group.namespace, group.name, group.min_member) == ("team", "all", 4)
        assert [(part.name, part.size) for part in group.sub_groups] == [
            ("leader", 2),
            ("workers", 2),
        ]
        assert sorted(pod.group_name for pod in one.pods) == ["leader"] * 2 + ["workers"] * 2


def test_a_tree_whose_parent_is_not_in_the_files_is_refused() -> None:
    with pytest.raises(InvalidManifest, match=r"leader, workers: the parent team/all .* is not in"):
        asked(PARTS)


def test_a_tree_with_errors_is_refused() -> None:
    with pytest.raises(InvalidManifest, match=r"team/all: .* name different Workloads: other, w"):
        asked(f"{TREE.replace('workloadName: w', 'workloadName: other')}---{PARTS}")


def test_an_object_that_declares_no_gang_is_passed_over_and_named() -> None:
    text = f"kind: Service\nmetadata: {{name: s}}\n---\n{DEPLOYMENT}"
    found = expand(flattened(yaml.safe_load_all(text)), namespace="team", scheduler_names=())
    assert found.passed_over == ["document 1, Service s"]
    assert [one.group.name for one in found.questions] == ["web"]


def test_gangs_are_asked_about_in_the_order_of_the_manifests() -> None:
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: a}\n"
    text = "\n---\n".join((group, DEPLOYMENT, group.replace("name: a", "name: z")))
    assert [one.group.name for one in asked(text)] == ["a", "web", "z"]


DEPLOYMENT = (
    f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\n"
    f"spec: {{template: {{{_inline()}}}}}"
)
