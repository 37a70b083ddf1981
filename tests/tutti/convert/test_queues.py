"""Queues of other projects as Volcano Queues: what is kept, what is listed, and that the webhook
accepts the result.
"""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from shared.dialects.kubebatch_fields import read_queue
from shared.kinds.queue import Queue as KubeQueue
from tests.services.admission_webhook.reviews import reference_objects, review, texts
from tutti.convert.command import converted, queues
from tutti.convert.queue_tree import Conversion, Queue

if TYPE_CHECKING:
    from shared.model.objects import Queue as StoredQueue

GPU = "nvidia.com/gpu"


def read(*texts_: str) -> Conversion:
    documents = [one for text in texts_ for one in yaml.safe_load_all(text) if one]
    return converted(documents, GPU)


def one_of(conversion: Conversion, name: str) -> dict[str, Any]:
    (found,) = (one.manifest() for one in conversion.queues if one.name == name)
    return found


def losses_of(conversion: Conversion, name: str) -> str:
    (found,) = (one.losses for one in conversion.queues if one.name == name)
    return "; ".join(found)


def accepted(conversion: Conversion) -> None:
    """Create the queues in their order, as the webhook sees them."""
    stored: list[StoredQueue] = []
    for queue in conversion.queues:
        manifest = queue.manifest()
        assert texts(manifest, reference_objects(*stored)) == [], manifest
        typed = msgspec.convert(manifest, KubeQueue)
        metadata = msgspec.structs.replace(typed.metadata, uid=queue.name)
        stored.append(
            read_queue(msgspec.structs.replace(typed, metadata=metadata), dialect="volcano")
        )
        assert review(manifest)


KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: org
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  fairSharing: {weight: 2}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources:
      - {name: cpu, nominalQuota: 10, borrowingLimit: 3, lendingLimit: 4}
      - {name: memory, nominalQuota: 40Gi}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-b}
spec:
  cohort: org
  namespaceSelector: {matchLabels: {team: b}}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: 4}]}
    - {name: demand, resources: [{name: cpu, nominalQuota: 1}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: alone}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 5500m}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: lq, namespace: a}
spec: {clusterQueue: team-a}
"""


def test_kueues_quotas_become_a_tree_with_the_cohort_as_parent() -> None:
    found = read(KUEUE)
    assert one_of(found, "org")["spec"] == {
        "weight": 1,
        "deserved": {"cpu": "15", "memory": "40Gi"},
        "capability": {"cpu": "15", "memory": "40Gi"},
        "guarantee": {"resource": {"cpu": "6"}},
    }
    assert one_of(found, "team-a")["spec"] == {
        "weight": 2,
        "parent": "org",
        "dequeueStrategy": "fifo",
        "deserved": {"cpu": "10", "memory": "40Gi"},
        "capability": {"cpu": "13"},
        "guarantee": {"resource": {"cpu": "6"}},
    }
    assert one_of(found, "team-b")["spec"]["deserved"] == {"cpu": "5"}
    alone = one_of(found, "alone")["spec"]
    assert alone["deserved"] == alone["capability"] == {"cpu": "5500m"}, "it borrows from no one"
    accepted(found)


def test_what_kueue_has_and_volcano_has_not_is_listed() -> None:
    found = read(KUEUE)
    lost = losses_of(found, "team-b")
    assert "its flavors spot, demand are added" in lost
    assert "spec.preemption has no equivalent" in lost
    assert "spec.namespaceSelector has no equivalent" in lost
    assert losses_of(found, "team-a") == ""
    assert "selects no namespaces" in losses_of(found, "alone")
    annotate = "kubectl annotate namespace a scheduling.volcano.sh/queue-name=team-a"
    assert any(annotate in line for line in found.losses)


def test_cohorts_are_nested_and_have_quotas_of_their_own() -> None:
    cohorts = """
{apiVersion: kueue.x-k8s.io/v1beta1, kind: Cohort, metadata: {name: org}, spec: {parentName: all,
 resourceGroups: [{flavors: [{name: default, resources: [{name: cpu, nominalQuota: 7}]}]}]}}
---
"""
    found = read(cohorts, KUEUE)
    assert one_of(found, "org")["spec"]["deserved"]["cpu"] == "22"
    assert one_of(found, "org")["spec"]["parent"] == "all"
    assert one_of(found, "all")["spec"]["capability"]["cpu"] == "22"
    accepted(found)


KAI = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: dept}
spec:
  resources:
    gpu: {quota: 4, limit: -1, overQuotaWeight: 1}
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec:
  parentQueue: dept
  priority: 5
  displayName: Research
  preemptMinRuntime: 5m
  resources:
    gpu: {quota: 6.5, limit: 8, overQuotaWeight: 2}
    memory: {quota: 1000, limit: -1, overQuotaWeight: 0}
"""


def test_kais_units_limits_and_runtimes_are_converted() -> None:
    found = read(KAI)
    research = one_of(found, "research")
    assert research["spec"] == {
        "weight": 2,
        "parent": "dept",
        "priority": 5,
        "deserved": {"memory": "1000000000", GPU: "7"},
        "capability": {"memory": "1000000000", GPU: "8"},
    }
    assert research["metadata"]["annotations"] == {"tutti.dev/minimum-run-seconds": "300"}
    assert one_of(found, "dept")["spec"]["priority"] == 100, "KAI's default"
    assert "its cpu quota is unlimited" in losses_of(found, "dept")
    assert f"deserves what its children deserve together: 1000000000 memory, 7 {GPU}" in losses_of(
        found, "dept"
    )
    assert "6.5 gpu is 7 now" in losses_of(found, "research")
    assert "spec.displayName has no equivalent" in losses_of(found, "research")
    accepted(found)


YUNIKORN = """
partitions:
- name: default
  placementrules: [{name: tag}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: Ads_team
      resources: {guaranteed: {vcore: 10, memory: 10Gi}, max: {vcore: "20", memory: 20Gi}}
      queues:
      - name: x
        maxapplications: 3
        resources: {guaranteed: {vcore: 500m}, max: {vcore: 30}}
"""


@pytest.mark.parametrize("in_config_map", [False, True], ids=["a file", "its ConfigMap"])
def test_yunikorns_tree_keeps_its_paths(*, in_config_map: bool) -> None:
    text = YUNIKORN
    if in_config_map:
        config = {"kind": "ConfigMap", "data": {"queues.yaml": YUNIKORN}}
        text = yaml.safe_dump({"apiVersion": "v1", "metadata": {"name": "y"}, **config})
    found = read(text)
    assert [one.name for one in found.queues] == ["ads-team", "ads-team.x"]
    child = one_of(found, "ads-team.x")["spec"]
    assert (child["parent"], child["deserved"]) == ("ads-team", {"cpu": "500m"})
    assert child["capability"] == {"cpu": "20"}
    lost = losses_of(found, "ads-team.x")
    assert "maxapplications has no equivalent" in lost
    assert "its capability is that of its parent: 20 cpu" in lost
    assert any("placementrules" in line for line in found.losses)
    assert any("submitacl" in line for line in found.losses)
    accepted(found)


def test_a_tree_that_is_too_deep_is_flattened_and_says_so() -> None:
    queues = "---".join(
        f"""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: q{level}}}
spec: {{parentQueue: {f"q{level - 1}" if level else '""'}}}
"""
        for level in range(7)
    )
    found = read(queues)
    assert "its level is below the 5" in losses_of(found, "q6")
    accepted(found)


def kai_queue(name: str, parent: str, quota: int, limit: int) -> dict[str, Any]:
    amounts = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent, "resources": {"cpu": amounts}},
    }


ROW = st.tuples(st.integers(0, 9), st.integers(-1, 50), st.integers(-1, 50))


@given(st.lists(ROW, max_size=9))
def test_whatever_the_amounts_the_webhook_accepts(rows: list[tuple[int, int, int]]) -> None:
    documents = [
        kai_queue(f"q{at}", f"q{parent}" if parent < at else "", quota, limit)
        for at, (parent, quota, limit) in enumerate(rows)
    ]
    found = converted(documents, GPU)
    assert sorted(one.name for one in found.queues) == sorted(f"q{at}" for at in range(len(rows)))
    accepted(found)


def test_names_that_kubernetes_refuses_or_that_are_taken_are_replaced() -> None:
    found = read(YUNIKORN.replace("Ads_team", "root"), KAI.replace("dept", "root"))
    names = [one.name for one in found.queues]
    assert len(set(names)) == len(names)
    assert "root" not in names


def ran(text: str) -> Result:
    return CliRunner().invoke(queues, ["-f", "-"], input=text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, "
            "metadata: {name: a}, spec: 5}",
            "ClusterQueue 1 of Kueue: Expected `object`, got `int` - at `$.spec`",
        ),
        (
            "{apiVersion: scheduling.run.ai/v2, kind: Queue}",
            "Queue 1 of KAI: Object missing required field `metadata`",
        ),
        (
            "partitions: [{queues: [a]}]",
            "queues.yaml: Expected `object`, got `str` - at `$.partitions[0].queues[0]`",
        ),
    ],
)
def test_a_member_of_the_wrong_type_is_named_with_its_object(text: str, words: str) -> None:
    assert f"tutti: cannot convert this: {words}" in ran(text).stderr


def test_manifests_are_printed_and_losses_twice() -> None:
    done = ran(KAI)
    assert done.exit_code == 0
    kinds = [one["kind"] for one in yaml.safe_load_all(done.stdout)]
    assert kinds == ["Queue", "Queue"]
    line = "Queue research: spec.displayName has no equivalent"
    assert f"# {line}\n" in done.stdout
    assert f"{line}\n" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "5",
        "{}",
        "{apiVersion: v1, kind: Pod}",
        "{apiVersion: scheduling.run.ai/v2, kind: Queue}",
        "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}, spec: 5}",
        "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}, "
        "spec: {resources: {cpu: {quota: x}}}}",
        "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}, "
        "spec: {parentQueue: a}}",
        "partitions: 5",
        "partitions: [{queues: [{name: root, queues: [5]}]}]",
        "partitions: [{queues: [{name: a, resources: {max: {vcore: no}}}]}]",
        "partitions: [{queues: [{name: a}, {name: a}]}]",
        "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: a}, "
        "spec: {resourceGroups: [{flavors: [{resources: [{name: cpu, nominalQuota: -1}]}]}]}}",
    ],
)
def test_files_that_cannot_be_converted_are_refused(text: str) -> None:
    done = ran(text)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("tutti: ")


def test_a_queue_with_nothing_is_a_queue() -> None:
    assert Queue(name="a", source="").manifest()["spec"] == {"weight": 1}
