"""A highly available release on two real nodes, of which one loses its power."""

import time
from typing import Final

import pytest

from tests.realnodes.charts import highly_available, install
from tests.realnodes.cluster import RealCluster
from tests.realnodes.conftest import Measured
from tests.realnodes.workload import (
    NAMESPACE,
    component,
    desired,
    not_ready,
    placed,
    restarts,
    services_pods,
    submit_gang,
    wait_for_gang,
    wait_until,
)

pytestmark = [pytest.mark.certify, pytest.mark.timeout(1500)]

_LEADERS: Final = ("gang-planner", "watcher")
#: Pods of these wait for their node; all others are made again elsewhere.
_BOUND_TO_THEIR_NODE: Final = {"nats", "admission-webhook", "api"}
_BOUND_S: Final = 30.0
#: Connections into a node without power are silent, not refused: clients of its NATS
#: server notice that after 6 s, and Services choose its pods until Kubernetes calls it unreachable.
_BOUND_AFTER_DEATH_S: Final = 30.0
#: Kubernetes calls a node unreachable after 50 s; 5 s later its pods are made again.
_REPLACED_S: Final = 120.0
_RETURNED_S: Final = 180.0


def test_a_node_with_leaders_and_a_nats_server_dies_and_comes_back(
    cluster: RealCluster, measured: Measured
) -> None:
    install(cluster, highly_available(cluster.release))
    assert not_ready(cluster) == {}
    assert restarts(cluster) == {}
    there = placed(cluster)
    assert {name for name, nodes in there.items() if len(set(nodes)) < 2} == set(), there
    submit_gang(cluster, "before")
    wait_for_gang(cluster, "before", _BOUND_S)

    victim = min(cluster.nodes, key=there["nats"].count)
    assert there["nats"].count(victim) == 1, "two of three servers must survive"
    _lead_from(cluster, victim)
    cluster.nodes[victim].kill()
    killed_s = time.monotonic()
    submit_gang(cluster, "after")
    wait_for_gang(cluster, "after", _BOUND_AFTER_DEATH_S)
    measured("a gang is bound after the death in", time.monotonic() - killed_s)

    wait_until(lambda: set(not_ready(cluster)) == _BOUND_TO_THEIR_NODE, _REPLACED_S, "replaced")
    measured("services are replaced in", time.monotonic() - killed_s)
    cluster.nodes[victim].start()
    cluster.wait_for_nodes(list(cluster.nodes))
    returned_s = wait_until(lambda: not not_ready(cluster), _RETURNED_S, "all is ready again")
    measured("all is ready after the return in", returned_s)
    assert desired(cluster)["nats"] == 3
    submit_gang(cluster, "afterwards")
    wait_for_gang(cluster, "afterwards", _BOUND_S)


def _lead_from(cluster: RealCluster, node: str) -> None:
    """Have planner and watcher lead from this node: their replicas elsewhere are made again, and
    leadership goes to one that is there already."""
    elsewhere = [
        pod["metadata"]["name"]
        for pod in services_pods(cluster)
        if component(pod) in _LEADERS and pod["spec"]["nodeName"] != node
    ]
    cluster.kubectl("delete", "pods", *elsewhere, f"--namespace={NAMESPACE}")
    wait_until(lambda: not not_ready(cluster), _RETURNED_S, "leaders are where they should be")
