"""The running kube-scheduler chooses a node that our filters allow, and where it finds none, so do
we, with as many nodes for each reason.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import Phase, assume, given, note, settings

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.oracle import clusters, pod_terms
from tests.oracle.planner import judge
from tests.oracle.running import RunningScheduler, counts
from tests.oracle.scheduler import Cluster
from tests.oracle.test_filters import QUICK

#: Each example is some forty requests, so that none is made smaller.
FIFTY = settings(QUICK, max_examples=25, phases=[Phase.generate])
_TAINT: Final = "node(s) had untolerated taint(s)"
_NAMED_NODES: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_NAMED_TAINT: Final = "node(s) had untolerated taint {"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningScheduler]:
    """A control plane with kube-scheduler in its default configuration."""
    with (
        ControlPlane(ControlPlaneOptions(scheduler=True)) as control_plane,
        RunningScheduler(control_plane) as scheduler,
    ):
        yield scheduler


def compare(running: RunningScheduler, cluster: Cluster, pod: dict[str, Any]) -> None:
    """Both answers to one question."""
    said = running.judge(cluster, pod)
    assume(said is not None)
    assert said is not None
    judged = judge(said.cluster, said.pod)
    note(f"kube-scheduler says {said.node or said.message}")
    note(f"the planner says {judged}")
    assert not judged.unsupported
    if said.node:
        assert said.node in judged.holds
        assert judged.decided
    else:
        assert not judged.decided
        ours, theirs = _alike(counts(judged.sentence)), _alike(counts(said.message))
        if theirs.pop(_NAMED_NODES, 0):
            # Nodes beside those that a pod names are counted before any rule there, here for the
            # first rule that refuses them, as all others.
            assert theirs <= ours
        else:
            assert ours == theirs


def _alike(found: Counter[str]) -> Counter[str]:
    """Leave out the details that only one side has: Tutti names the taint, as kube-scheduler did
    until 1.34.
    """
    alike: Counter[str] = Counter()
    for text, number in found.items():
        alike[_TAINT if text.startswith(_NAMED_TAINT) else text] += number
    return alike


@pytest.mark.certify
@pytest.mark.timeout(600)
@given(clusters.clusters(), clusters.pod("asked"))
@FIFTY
def test_the_running_scheduler_agrees_about_resources_ports_taints_and_node_affinity(
    running: RunningScheduler, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(running, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(600)
@given(pod_terms.cluster(), pod_terms.pod("asked"))
@FIFTY
def test_the_running_scheduler_agrees_about_rules_between_pods(
    running: RunningScheduler, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(running, cluster, pod)
