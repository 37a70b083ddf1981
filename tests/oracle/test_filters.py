"""Our filters let a pod use exactly the nodes that kube-scheduler's filters let it use.

Known to differ on purpose, and not drawn here: a node whose condition Ready is not True is refused
by us before it has its taint (`filters/node_ready.py`), so that nothing is bound to it in the
seconds before the node controller sees it.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.planner import Judged, judge
from tests.oracle.scheduler import Cluster, SchedulerOracle

#: In `make test`, where the profile draws the same examples each time.
QUICK = settings(
    max_examples=60,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
THOROUGH = settings(QUICK, max_examples=4_000)


def compare(oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]) -> Judged:
    """Both answers, node by node; then what the planner decides."""
    refused = oracle.refused(cluster, pod)
    names = {one["metadata"]["name"] for one in cluster["nodes"]}
    judged = judge(cluster, pod)
    note(f"kube-scheduler refuses {refused}")
    note(f"the planner says {judged}")
    assert not judged.unsupported
    assert set(judged.holds) == names - set(refused)
    assert (judged.decided in judged.holds) if judged.holds else not judged.decided
    return judged


@given(clusters.clusters(), clusters.pod("asked"))
@QUICK
def test_resources_ports_taints_and_node_affinity_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(clusters.clusters(), clusters.pod("asked"))
@THOROUGH
def test_thousands_of_clusters_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)


@given(st.data())
@settings(QUICK, max_examples=20)
def test_refusals_have_kube_schedulers_words(oracle: SchedulerOracle, data: st.DataObject) -> None:
    """Where one node exists and is refused, our sentence has the reason of the oracle."""
    cluster = data.draw(clusters.clusters())
    cluster = {**cluster, "nodes": cluster["nodes"][:1]}
    cluster["pods"] = [one for one in cluster["pods"] if one["spec"]["nodeName"] == "n0"]
    pod = data.draw(clusters.pod("asked"))
    refused = oracle.refused(cluster, pod)
    if not refused:
        return
    sentence = judge(cluster, pod).sentence
    for reason in refused["n0"].reasons:
        # Ours names the taint, as kube-scheduler did until 1.34.
        assert reason.removesuffix("(s)") in sentence
