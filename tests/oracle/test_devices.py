"""Claims for whole devices keep a pod off the same nodes here and in kube-scheduler."""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.oracle import devices
from tests.oracle.scheduler import Cluster, SchedulerOracle
from tests.oracle.test_filters import QUICK, compare


# The oracle's informers need a tenth of a second for a cluster with claims.
@given(devices.cluster(), devices.pod("asked"))
@settings(QUICK, max_examples=30)
def test_claims_for_devices_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(devices.cluster(), devices.pod("asked"))
@settings(QUICK, max_examples=1_000)
def test_claims_for_devices_agree_on_many_clusters(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)
