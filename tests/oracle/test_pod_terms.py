"""Affinity, anti-affinity and spread keep a pod off the same nodes here and in kube-scheduler."""

from typing import Any

import pytest
from hypothesis import given

from tests.oracle import pod_terms
from tests.oracle.scheduler import Cluster, SchedulerOracle
from tests.oracle.test_filters import QUICK, THOROUGH, compare


@given(pod_terms.cluster(), pod_terms.pod("asked"))
@QUICK
def test_rules_between_pods_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(pod_terms.cluster(), pod_terms.pod("asked"))
@THOROUGH
def test_rules_between_pods_agree_on_thousands_of_clusters(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare(oracle, cluster, pod)
