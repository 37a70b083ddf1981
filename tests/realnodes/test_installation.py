"""The release on real nodes: installed, taken from one NATS server to three, and uninstalled."""

import re
import shlex
from typing import Final

import pytest

from tests.realnodes.charts import highly_available, image_of, install, uninstall, upgrade
from tests.realnodes.cluster import RealCluster
from tests.realnodes.conftest import Measured
from tests.realnodes.control import ToolError
from tests.realnodes.workload import (
    RELEASE,
    component,
    delete_gang,
    desired,
    failed_mounts,
    not_ready,
    restarts,
    services_pods,
    submit_gang,
    wait_for_gang,
    wait_until,
)

pytestmark = [pytest.mark.certify, pytest.mark.timeout(1500)]

_BOUND_S: Final = 30.0
#: What ADR 0018 waits before it decides without what the old streams held, and the servers' start.
_AFTER_LOSS_S: Final = 240.0
#: Kubernetes mounts a missing Secret again after 0.5, 1, 2 and 4 s: it is there by then.
_MOUNTS_PER_POD_MAX: Final = 5


def test_a_default_release_is_installed_made_highly_available_and_removed(
    cluster: RealCluster, measured: Measured
) -> None:
    install(cluster)
    assert not_ready(cluster) == {}
    assert desired(cluster)["nats"] == 1
    assert restarts(cluster) == {}
    assert _images(cluster) == {image_of(cluster, cluster.release)}
    mounts = failed_mounts(cluster)
    assert max(mounts.values(), default=0) <= _MOUNTS_PER_POD_MAX
    submit_gang(cluster, "first")
    measured("a gang is bound after", wait_for_gang(cluster, "first", _BOUND_S))

    _upgrade_as_the_refusal_says(cluster)
    submit_gang(cluster, "second")
    bound_s = wait_for_gang(cluster, "second", _AFTER_LOSS_S)
    measured("with three new servers after", bound_s)
    assert not_ready(cluster) == {}

    for name in ("first", "second"):
        delete_gang(cluster, name)
    uninstall(cluster)
    gone_s = wait_until(lambda: not _leases(cluster), 120, "no Lease of Tutti is left")
    measured("no Lease is left after", gone_s)


def _upgrade_as_the_refusal_says(cluster: RealCluster) -> None:
    """One server cannot become three; the refusal names two commands, after which it can."""
    values = highly_available(cluster.release)
    with pytest.raises(ToolError) as refused:
        upgrade(cluster, values)
    assert desired(cluster)["nats"] == 1
    commands = re.findall(r"kubectl (-n .*?)(?: && | \(docs/)", str(refused.value))
    assert len(commands) == 2, refused.value
    for command in commands:
        cluster.kubectl(*shlex.split(command))
    upgrade(cluster, values)
    assert desired(cluster)["nats"] == 3


def _images(cluster: RealCluster) -> set[str]:
    """What the services' containers run; kubelets found it by the digest that the chart names."""
    return {
        container["image"]
        for pod in services_pods(cluster)
        for container in pod["spec"]["containers"]
        if component(pod) != "nats"
    }


def _leases(cluster: RealCluster) -> list[str]:
    """Names of Leases that Tutti made."""
    names = [one["metadata"]["name"] for one in cluster.listed("leases.coordination.k8s.io")]
    return [name for name in names if name.startswith(RELEASE)]
