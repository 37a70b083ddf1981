"""Volumes and claims keep a pod off the same nodes here and in kube-scheduler."""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.oracle import volumes
from tests.oracle.scheduler import Cluster, SchedulerOracle
from tests.oracle.test_filters import QUICK, compare

CLAIMS = ("c0", "c1", "c2", "c9")


# The oracle's informers need a tenth of a second for a cluster with storage.
@given(volumes.cluster(), volumes.pod("asked", CLAIMS))
@settings(QUICK, max_examples=30)
def test_volumes_and_claims_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(volumes.cluster(), volumes.pod("asked", CLAIMS))
@settings(QUICK, max_examples=1_000)
def test_volumes_and_claims_agree_on_many_clusters(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)
