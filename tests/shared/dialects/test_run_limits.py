"""Limits of run time, as users' objects state them."""

from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.dialects import coscheduling, kubernetes, kubernetes_composite, volcano
from shared.dialects.discovery import dialects
from shared.dialects.field_checks import Findings
from shared.dialects.group_metadata import shown
from shared.dialects.kubebatch_fields import read_queue
from shared.dialects.owner_kinds import owner_kind
from shared.dialects.protocol import Dialect
from shared.dialects.run_limits import KUEUE, SLURM, SOURCES, annotations_of_owner, stated_by_owner
from shared.dialects.settings import check_settings, of_gang
from shared.kinds.durations import SECONDS_MAX, slurm_seconds
from shared.kinds.queue import Queue
from shared.kube.owner_objects import JobTemplate
from shared.model.gang_keys import key_of_group
from shared.model.group_trees import GroupTrees
from shared.model.objects import GANG_PREFIX, QUEUE_ERRORS, PodGroup, RunLimits
from tests.shared.dialects.reading import (
    controlled_by,
    decoded,
    group_read,
    metadata,
    pod,
    shape_of,
)

LIMIT = annotations.RUN_LIMIT
Object = dict[str, Any]
PATH = f"metadata.annotations[{LIMIT}]"
NOT_A_DURATION = 'is not a duration, as in "90m", "4h30m" or "5400"'
NOT_POSITIVE = NOT_A_DURATION.replace("a duration", "a positive duration")
#: What an object states in its metadata, and the limit.
MARKS: list[tuple[Object, int]] = [
    ({"annotations": {LIMIT: "90m"}}, 5_400),
    ({"annotations": {LIMIT: "4h30m"}}, 16_200),
    ({"annotations": {LIMIT: "5400"}}, 5_400),
    ({"annotations": {annotations.OWNER_RUN_LIMIT: "60"}}, 60),
    ({"annotations": {SLURM: "5"}}, 300),
    ({"labels": {KUEUE: "120"}}, 120),
    # Two that differ: the smaller.
    ({"annotations": {LIMIT: "90m", SLURM: "5"}}, 300),
    ({"annotations": {LIMIT: "1m"}, "labels": {KUEUE: "120"}}, 60),
    # Too large for 31 bits.
    ({"annotations": {LIMIT: "9" * 30}}, SECONDS_MAX),
    ({"annotations": {SLURM: "9" * 30}}, SECONDS_MAX),
    ({"labels": {KUEUE: str(2**31)}}, 0),
    # Of other APIs' values, what cannot be read is none, as there.
    ({"annotations": {SLURM: "soon"}}, 0),
    ({"labels": {KUEUE: "-5"}}, 0),
    ({"labels": {KUEUE: "-5"}, "annotations": {LIMIT: "7"}}, 7),
    ({}, 0),
]
MALFORMED = ["soon", "-5m", "0", "0s", "", "1.5", "2d", "90m30", " 90m", "٣", "1h" * 33, "9" * 65]


@pytest.mark.parametrize(("marks", "seconds"), MARKS, ids=str)
@pytest.mark.parametrize("dialect", [volcano.DIALECT, coscheduling.DIALECT], ids=lambda d: d.name)
def test_a_group_has_the_smallest_limit_that_it_states(
    dialect: Dialect, marks: Object, seconds: int
) -> None:
    group = group_read(dialect, {"metadata": metadata(**marks), "spec": {}})
    assert (group.run_limit_s, group.errors) == (seconds, ())


#: Each needs more than a name; a budget is a gang of its owner's pods only.
SPECS: Object = {"disruption_budget": {"minAvailable": 2}}
GROUPS = [each for each in dialects() if any(kind.neutral == "podgroup" for kind in each.kinds)]


@pytest.mark.parametrize("dialect", GROUPS, ids=lambda each: each.name)
def test_the_groups_of_every_dialect_have_the_limit_that_they_state(dialect: Dialect) -> None:
    def read(**marks: Any) -> PodGroup:
        given = metadata(ownerReferences=controlled_by(), **marks)
        return group_read(dialect, {"metadata": given, "spec": SPECS.get(dialect.name, {})})

    unmarked = read()
    assert unmarked.run_limit_s == 0
    assert read(annotations={LIMIT: "90m", SLURM: "100"}).run_limit_s == 5_400
    assert read(labels={KUEUE: "120"}).run_limit_s == 120
    malformed = read(annotations={LIMIT: "soon"})
    assert malformed.run_limit_s == 0
    (words,) = (error for error in malformed.errors if error not in unmarked.errors)
    assert words == f'{PATH}: "soon" {NOT_POSITIVE}'


def test_a_tree_of_groups_has_the_smallest_limit_of_its_groups() -> None:
    def group(name: str, limit: str = "", parent: str = "", **fields: Any) -> PodGroup:
        notes = {LIMIT: limit} if limit else {}
        policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
        manifest = {"metadata": metadata(name, annotations=notes), "spec": policy}
        read = group_read(kubernetes.DIALECT, manifest)
        scope = kubernetes_composite.SCOPE if parent else ""
        return msgspec.structs.replace(read, parent=parent, parent_scope=scope, **fields)

    def limit_of(*parts: PodGroup) -> int:
        trees = GroupTrees()
        root = group("root", "2h", scope=kubernetes_composite.SCOPE, min_groups=1)
        for each in (root, *parts):
            trees.put(each)
        whole = trees.group_of_gang(key_of_group(root))
        assert whole is not None
        return whole.run_limit_s

    assert limit_of(group("a", parent="root")) == 7_200
    assert limit_of(group("a", "1h", "root"), group("b", "3h", "root")) == 3_600


@pytest.mark.parametrize(("marks", "seconds"), MARKS, ids=str)
def test_a_pod_has_the_smallest_limit_that_it_states(marks: Object, seconds: int) -> None:
    read = pod(**marks)
    assert (read.run_limit_s, shape_of(read).unsupported) == (seconds, ())
    both = pod({"activeDeadlineSeconds": 30}, **marks)
    assert both.run_limit_s == min(seconds or 30, 30)


@pytest.mark.parametrize(
    ("deadline", "seconds"), [(1, 1), (0, 0), (-4, 0), (2**40, SECONDS_MAX)], ids=str
)
def test_the_deadline_of_a_pod_is_a_limit(deadline: int, seconds: int) -> None:
    assert pod({"activeDeadlineSeconds": deadline}).run_limit_s == seconds


@pytest.mark.parametrize("text", MALFORMED)
def test_a_limit_that_is_no_duration_is_a_violation_and_not_absent(text: str) -> None:
    marks: Object = {"annotations": {LIMIT: text}}
    words = f'{PATH}: "{text[:50]}" {NOT_POSITIVE}'
    group = group_read(volcano.DIALECT, {"metadata": metadata(**marks), "spec": {}})
    assert (group.run_limit_s, group.errors) == (0, shown([words]))
    read = pod(**marks)
    assert (read.run_limit_s, shape_of(read).unsupported) == (0, (f"{GANG_PREFIX}{words}",))
    foreign = pod({"schedulerName": "other"}, **marks)
    assert shape_of(foreign).unsupported == ()


def owner(api_version: str, kind: str, manifest: Object) -> Any:
    """An object above pods, as the controllers decode it."""
    known = owner_kind(api_version, kind)
    assert known is not None
    return decoded(known.decoded, {"metadata": metadata(), **manifest})


OWNERS = [
    owner("batch/v1", "Job", {"spec": {"activeDeadlineSeconds": 60}}),
    owner("kubeflow.org/v2beta1", "MPIJob", {"spec": {"runPolicy": {"activeDeadlineSeconds": 60}}}),
    owner("ray.io/v1", "RayJob", {"spec": {"activeDeadlineSeconds": 60, "entrypoint": "main"}}),
    owner("trainer.kubeflow.org/v1alpha1", "TrainJob", {"spec": {"activeDeadlineSeconds": 60}}),
    decoded(JobTemplate, {"spec": {"activeDeadlineSeconds": 60}}),
    owner("ray.io/v1", "RayJob", {"metadata": metadata(labels={KUEUE: "60"})}),
    owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"metadata": metadata(annotations={SLURM: "1"})}),
    owner(
        "batch/v1",
        "Job",
        {
            "metadata": metadata(annotations={SLURM: "9"}, labels={KUEUE: "60"}),
            "spec": {"activeDeadlineSeconds": 600},
        },
    ),
]


@pytest.mark.parametrize("above", OWNERS, ids=lambda above: type(above).__name__)
def test_a_group_that_tutti_makes_inherits_what_objects_above_its_pods_state(above: Any) -> None:
    inherited = of_gang(annotations_of_owner(above))
    assert inherited == {annotations.OWNER_RUN_LIMIT: "60"}
    group = group_read(volcano.DIALECT, {"metadata": metadata(annotations=inherited), "spec": {}})
    assert group.run_limit_s == 60


def test_a_group_inherits_the_smallest_limit_and_not_the_first() -> None:
    nearest, above = {LIMIT: "2h"}, {LIMIT: "90m"}
    assert of_gang(nearest, above, {LIMIT: "3h"}, {LIMIT: "soon"}) == {LIMIT: "90m"}
    job = owner("batch/v1", "Job", {"metadata": metadata(annotations={LIMIT: "soon"})})
    assert of_gang(annotations_of_owner(job)) == {}


def test_every_source_names_a_field_that_is_read() -> None:
    read = {
        limit.path
        for above in (
            *OWNERS,
            owner("ray.io/v1", "RayJob", {"metadata": metadata(annotations={LIMIT: "1"})}),
        )
        for limit in stated_by_owner(above)
    }
    made = {source.path for source in SOURCES if source.key == annotations.OWNER_RUN_LIMIT}
    assert read | made == {source.path for source in SOURCES}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5_400),
        ("1:30", 120),
        ("0:01", 60),
        ("1:30:00", 5_400),
        ("1-12", 129_600),
        ("1-00:30", 88_200),
        ("1-00:30:01", 88_260),
        ("1h30m", 5_400),
        ("30s", 60),
        ("2d", 172_800),
        ("1w", 604_800),
        *((text, None) for text in ("", "0", "-5", "1.5", "1:2:3:4", "UNLIMITED", "5x", "٣", ":")),
    ],
)
def test_slurms_time_limits_are_read_as_slurm_bridge_reads_them(
    text: str, seconds: int | None
) -> None:
    assert slurm_seconds(text) == seconds


def a_queue(**given: str) -> Object:
    return {"metadata": {"name": "lane", "annotations": given}}


def queue_read(**given: str) -> Any:
    return read_queue(decoded(Queue, a_queue(**given)), dialect="volcano")


def test_a_queue_has_what_its_annotations_say() -> None:
    read = queue_read(
        **{
            LIMIT: "1h",
            annotations.RUN_LIMIT_MAX: "7200",
            annotations.RUN_LIMIT_NOTICE: "5m",
            annotations.RUN_LIMIT_ENFORCED: "false",
            annotations.CAPACITY_HOLD_AFTER: "30m",
        }
    )
    assert read.run_limits == RunLimits(
        usual_s=3_600, most_s=7_200, notice_s=300, enforced=False, hold_after_s=1_800
    )
    assert queue_read().run_limits == RunLimits()
    assert read.state == ""


NONE = (LIMIT, annotations.RUN_LIMIT_NOTICE, annotations.CAPACITY_HOLD_AFTER)


@pytest.mark.parametrize("zero", ["0", "0s", "0h0m"])
def test_a_queue_may_set_none_where_its_parent_sets_one(zero: str) -> None:
    read = queue_read(**dict.fromkeys(NONE, zero), **{annotations.RUN_LIMIT_ENFORCED: ""})
    assert read.run_limits == RunLimits(usual_s=0, notice_s=0, hold_after_s=0)
    assert read.state == ""


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (LIMIT, "soon", NOT_A_DURATION),
        (annotations.RUN_LIMIT_MAX, "0", NOT_POSITIVE),
        (annotations.RUN_LIMIT_MAX, "-1h", NOT_POSITIVE),
        (annotations.RUN_LIMIT_NOTICE, "2d", NOT_A_DURATION),
        (annotations.CAPACITY_HOLD_AFTER, "", NOT_A_DURATION),
        (annotations.RUN_LIMIT_ENFORCED, "no", 'is neither "true" nor "false"'),
    ],
)
def test_a_queue_with_a_malformed_limit_takes_no_gangs(key: str, text: str, words: str) -> None:
    read = queue_read(**{key: text})
    expected = f'metadata.annotations[{key}]: "{text}" {words}'
    assert (read.state, dict(read.settings)[QUEUE_ERRORS]) == ("Unknown", expected)
    assert read.run_limits == RunLimits()
    findings = Findings()
    check_settings(findings, a_queue(**{key: text}), on_queue=True)
    assert [error.text for error in findings.errors] == [expected]
