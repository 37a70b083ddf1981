"""Every field of a group object's or a queue's schema is read, or is listed as ignored.

A field is read if the neutral object depends on it. The manifests below set every field; where two
exclude each other, in several manifests.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
import yaml

from shared.dialects.discovery import dialect, dialects
from shared.dialects.ignored_fields import EACH, IgnoredField, fields_set, ignored, ignored_marks
from shared.dialects.protocol import Kind, ReadingContext
from shared.kube.decoding import KindDecoder
from tests.controlplane.fixtures import CRDS_DIR
from tests.dialects.cases import FOLDER

Object = dict[str, Any]
Steps = tuple[str, ...]

CRDS: Final = (CRDS_DIR, CRDS_DIR / "kube-batch", FOLDER / "crds")
CONTEXT: Final = ReadingContext(scheduler_names=frozenset({"tutti"}))
#: Kinds of the API server itself, which are in no file of CRDs: the fields of all versions.
BUILT_IN: Final[dict[str, tuple[str, ...]]] = {
    "podgroups.scheduling.k8s.io": (
        "spec.workloadRef.workloadName",
        "spec.workloadRef.templateName",
        "spec.podGroupTemplateRef.workload.workloadName",
        "spec.podGroupTemplateRef.workload.podGroupTemplateName",
        "spec.parentCompositePodGroupName",
        "spec.schedulingPolicy.basic",
        "spec.schedulingPolicy.gang.minCount",
        "spec.schedulingConstraints.topology[].key",
        "spec.resourceClaims[].name",
        "spec.resourceClaims[].resourceClaimName",
        "spec.resourceClaims[].resourceClaimTemplateName",
        "spec.disruptionMode.all",
        "spec.priorityClassName",
        "spec.priority",
        "spec.preemptionPolicy",
    ),
    "compositepodgroups.scheduling.k8s.io": (
        "spec.workloadRef.workloadName",
        "spec.workloadRef.templateName",
        "spec.parentCompositePodGroupName",
        "spec.schedulingPolicy.basic",
        "spec.schedulingPolicy.gang.minGroupCount",
        "spec.schedulingConstraints.topology[].key",
        "spec.disruptionMode.all",
        "spec.priorityClassName",
        "spec.priority",
        "spec.preemptionPolicy",
    ),
}
#: The title of a resource -> specs.
SPECS: Final[dict[str, list[Object]]] = yaml.safe_load("""
podgroups.scheduling.volcano.sh:
- minMember: 4
  minTaskMember: {worker: 3}
  queue: q
  priorityClassName: high
  minResources: {cpu: 4}
  networkTopology: {mode: soft, highestTierAllowed: 2}
  subGroupPolicy:
  - name: a
    subGroupSize: 2
    minSubGroups: 3
    labelSelector:
      matchLabels: {a: b}
      matchExpressions: [{key: c, operator: In, values: [d]}]
    matchLabelKeys: [e]
    networkTopology: {mode: soft, highestTierAllowed: 1}
- minMember: 4
  networkTopology: {mode: hard, highestTierName: rack}
  subGroupPolicy:
  - name: a
    subGroupSize: 2
    networkTopology: {mode: hard, highestTierName: rack}
queues.scheduling.volcano.sh:
- weight: 3
  capability: {cpu: 10}
  deserved: {cpu: 5}
  guarantee: {resource: {cpu: 1}}
  reclaimable: false
  extendClusters: [{name: c, weight: 1, capacity: {cpu: 1}}]
  affinity:
    nodeGroupAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [a]
      preferredDuringSchedulingIgnoredDuringExecution: [b]
    nodeGroupAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [c]
      preferredDuringSchedulingIgnoredDuringExecution: [d]
  type: t
  parent: p
  priority: 7
  dequeueStrategy: fifo
podgroups.scheduling.incubator.k8s.io: &kube_batch
- {minMember: 2, queue: q, priorityClassName: high}
podgroups.scheduling.sigs.dev: *kube_batch
queues.scheduling.incubator.k8s.io: &queues
- {weight: 3, capability: {cpu: 10}}
queues.scheduling.sigs.dev: *queues
podgroups.scheduling.x-k8s.io:
- {minMember: 2, minResources: {cpu: 4}, scheduleTimeoutSeconds: 30}
podgroups.scheduling.run.ai:
- minMember: 2
  queue: q
  priorityClassName: high
  preemptibility: non-preemptible
  parallelism: 1
  completions: 1
  backoffLimit: 1
  markUnschedulable: true
  schedulingBackoff: 1
  topologyConstraint: &levels
    {topology: t, requiredTopologyLevel: rack, preferredTopologyLevel: host}
- minSubGroup: 1
  subGroups: &sub_groups
  - {name: a, minSubGroup: 1}
  - {name: b, parent: a, minMember: 3, topologyConstraint: *levels}
  - {name: c, minMember: 3}
- subGroups: *sub_groups
- subGroups:
  - {name: a, minSubGroup: 1}
  - {name: b, parent: a, minMember: 3}
  - {name: c, parent: a, minMember: 3}
podgangs.scheduler.grove.io:
- priorityClassName: high
  podgroups:
  - name: a
    minReplicas: 2
    podReferences: [{name: p}]
    topologyConstraint: &packed {packConstraint: {required: rack, preferred: host}}
  - {name: b, minReplicas: 1}
  topologyConstraint: *packed
  topologyConstraintGroupConfigs:
  - {name: s, podGroupNames: [a], topologyConstraint: *packed}
  reuseReservationRef: {namespace: n, name: r}
- podgroups: [{name: a, minReplicas: 1, podReferences: [{name: p, namespace: other}]}]
  topologyConstraintGroupConfigs: [{name: s, podGroupNames: [a]}, {name: t, podGroupNames: [a]}]
podgroups.scheduling.k8s.io:
- workloadRef: {workloadName: w, templateName: t}
  podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: t}}
  parentCompositePodGroupName: p
  schedulingPolicy: {gang: {minCount: 3}}
  schedulingConstraints: {topology: [{key: rack}]}
  resourceClaims: [{name: c, resourceClaimName: d}, {name: e, resourceClaimTemplateName: f}]
  disruptionMode: {all: {}}
  priorityClassName: high
  priority: 4
  preemptionPolicy: Never
- schedulingPolicy: {basic: {}}
compositepodgroups.scheduling.k8s.io:
- workloadRef: {workloadName: w, templateName: t}
  parentCompositePodGroupName: p
  schedulingPolicy: {gang: {minGroupCount: 3}}
  schedulingConstraints: {topology: [{key: rack}]}
  disruptionMode: {all: {}}
  priorityClassName: high
  priority: 4
  preemptionPolicy: Never
- schedulingPolicy: {basic: {}}
""")
GROUPS: Final = [
    pytest.param(name, kind, id=kind.resource.title)
    for name, kind in (
        (each.name, kind)
        for each in dialects()
        for kind in each.kinds
        if kind.neutral in {"podgroup", "queue"} and not kind.claims_by_owner
    )
]


def schema_fields(title: str) -> set[Steps]:
    """The fields of `spec` in the schema of a kind."""
    if title in BUILT_IN:
        return {IgnoredField(kind="", path=one, because="").steps for one in BUILT_IN[title]}
    plural, _, group = title.partition(".")
    for folder in CRDS:
        path = folder / f"{group}_{plural}.yaml"
        if path.is_file():
            (version,) = yaml.safe_load(path.read_text())["spec"]["versions"]
            schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            return set(_of_schema(schema, ("spec",)))
    raise AssertionError(f"no CRD of {title}")


def _of_schema(schema: Object, steps: Steps) -> Iterator[Steps]:
    if "properties" in schema:
        for name, below in schema["properties"].items():
            yield from _of_schema(below, (*steps, name))
    elif schema.get("type") == "array":
        yield from _of_schema(schema["items"], (*steps, EACH))
    else:
        yield steps


def fields_of(
    value: Any, fields: set[Steps], steps: Steps = ()
) -> Iterator[tuple[Any, Any, Steps]]:
    """Parent, key and steps of each field of a manifest: of what the schema does not divide."""
    items: Any = ()
    if isinstance(value, dict):
        items = [(key, (*steps, key)) for key in value]
    elif isinstance(value, list):
        items = [(number, (*steps, EACH)) for number in range(len(value))]
    for key, below in list(items):
        if below in fields or not any(one[: len(below)] == below for one in fields):
            yield value, key, below
        else:
            yield from fields_of(value[key], fields, below)


def neutral_of(kind: Kind, one: Object) -> object:
    decoded: Any = KindDecoder(kind.decoded).object(msgspec.json.encode(one))
    return kind.neutral_object(decoded, CONTEXT)


def manifests(title: str) -> list[Object]:
    metadata = {"name": "g", "namespace": "team", "uid": "u"}
    return [{"metadata": metadata, "spec": spec} for spec in SPECS[title]]


@pytest.mark.parametrize(("name", "kind"), GROUPS)
def test_each_field_of_the_schema_is_read_or_listed_as_ignored(name: str, kind: Kind) -> None:
    fields = schema_fields(kind.resource.title)
    listed = [one for one in dialect(name).ignored if one.kind == kind.resource.kind]
    set_somewhere: set[Steps] = set()
    read: set[Steps] = set()
    for one in manifests(kind.resource.title):
        whole = neutral_of(kind, one)
        for parent, key, steps in fields_of(one["spec"], fields, ("spec",)):
            set_somewhere.add(steps)
            value = parent[key]
            parent[key] = None
            if neutral_of(kind, _without_nulls(one)) != whole:
                read.add(steps)
            parent[key] = value
    assert fields <= set_somewhere, "the manifests of this test set each field of the schema"
    are_ignored = {
        steps for steps in set_somewhere if any(_is_below(steps, one.steps) for one in listed)
    }
    assert read | are_ignored == set_somewhere, "neither read nor listed"
    assert not read & are_ignored, "listed, but read"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value if one is not None]
    return value


def _is_below(steps: Steps, above: Steps) -> bool:
    return steps[: len(above)] == above


def test_a_field_is_listed_once_and_of_a_kind_of_its_dialect() -> None:
    for one in dialects():
        kinds = {kind.resource.kind for kind in one.kinds} | {"Pod"}
        paths = [(field.kind, field.path) for field in one.ignored]
        assert {kind for kind, _ in paths} <= kinds
        assert len(set(paths)) == len(paths)


def test_marks_of_pods_that_a_dialect_reads_are_not_listed() -> None:
    for one in dialects():
        keys = {key for reference in one.references for key in (reference.key,)}
        for place in (one.min_member, one.role, one.index, one.queue):
            keys |= {*place.annotations, *place.labels}
        listed = {field.steps[-1] for field in one.ignored if len(field.steps) == 3}
        assert not keys & listed


@pytest.mark.parametrize(
    ("path", "one", "expected"),
    [
        ("spec.a.b", {"spec": {"a": {"b": 0}}}, True),
        ("spec.a.b", {"spec": {"a": {"b": None}}}, False),
        ("spec.a.b", {"spec": {"a": {"b": {}}}}, False),
        ("spec.a.b", {"spec": {"a": 5}}, False),
        ("spec.a.b", {"spec": "no object"}, False),
        ("spec.a[].b", {"spec": {"a": [{}, {"b": "x"}]}}, True),
        ("spec.a[].b", {"spec": {"a": [{"c": "x"}]}}, False),
        ("spec.a[].b", {"spec": {"a": {"b": "x"}}}, False),
        ("metadata.labels[example.com/a]", {"metadata": {"labels": {"example.com/a": "x"}}}, True),
    ],
)
def test_which_fields_an_object_sets(path: str, one: Object, expected: bool) -> None:
    fields = ignored("PodGroup", "of the test", path)
    assert list(fields_set(one, fields)) == (list(fields) if expected else [])


def test_the_value_of_a_mark_may_be_json() -> None:
    (mark,) = ignored_marks("annotations", "of the test", "example.com/groups")
    inner = IgnoredField(kind="Pod", path=f"{mark.path}[].affinity", because="of the test")
    assert inner.sentence == "metadata.annotations[example.com/groups][].affinity: of the test"

    def found(text: str) -> list[IgnoredField]:
        one = {"metadata": {"annotations": {"example.com/groups": text}}}
        return list(fields_set(one, (mark, inner)))

    assert found('[{"affinity": {"a": 1}}]') == [mark, inner]
    assert found('[{"other": 1}]') == [mark]
    assert found("no JSON") == [mark]


def test_fields_that_only_volcano_has_are_named_on_objects_of_kube_batch() -> None:
    group = {"minTaskMember": {"a": 1}, "minResources": {"cpu": "1"}}
    queue = {"type": "x", "extendClusters": [{"name": "b"}]}
    for declared in (dialect("incubator"), dialect("sigs")):
        for kind, spec in (("PodGroup", group), ("Queue", queue)):
            listed = [field for field in declared.ignored if field.kind == kind]
            named = {field.path for field in fields_set({"spec": spec}, listed)}
            assert named == {f"spec.{name}" for name in spec}, declared.name
