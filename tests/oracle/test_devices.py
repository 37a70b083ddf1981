"""Claims for devices keep a pod off the same nodes here and in kube-scheduler, and it accepts the
devices that the planner chooses.
"""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.oracle import device_features, devices
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


@given(device_features.cluster(), device_features.pod("asked"))
@settings(QUICK, max_examples=60)
def test_every_kind_of_request_agrees(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare_choice(oracle, cluster, pod)


@given(device_features.mixed_cluster(), device_features.requesting_pod("asked"))
@settings(QUICK, max_examples=60)
def test_extended_resources_agree(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare_choice(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(device_features.mixed_cluster(), device_features.requesting_pod("asked"))
@settings(QUICK, max_examples=1_000)
def test_extended_resources_agree_on_many_clusters(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare_choice(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(1200)
@given(device_features.cluster(rules=True), device_features.pod("asked"))
@settings(QUICK, max_examples=500)
def test_taint_rules_agree(oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]) -> None:
    compare_choice(oracle, cluster, pod)


@pytest.mark.certify
@pytest.mark.timeout(2400)
@given(device_features.cluster(), device_features.pod("asked"))
@settings(QUICK, max_examples=4_000)
def test_every_kind_of_request_agrees_on_thousands_of_clusters(
    oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]
) -> None:
    compare_choice(oracle, cluster, pod)


def compare_choice(oracle: SchedulerOracle, cluster: Cluster, pod: dict[str, Any]) -> None:
    """Compare the nodes; then kube-scheduler must find devices where the chosen ones alone are
    free.
    """
    judged = compare(oracle, cluster, pod)
    if judged.decided:
        rest = device_features.only_these(cluster, set(judged.devices))
        assert judged.decided not in oracle.refused(rest, pod)
