"""Upgrade from a former release's artefacts, rollback, and upgrade again, while gangs run, wait and
arrive all the time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.realnodes.charts import (
    highly_available,
    image_of,
    install,
    roll_back,
    uninstall,
    upgrade,
)
from tests.realnodes.cluster import RealCluster
from tests.realnodes.conftest import Measured
from tests.realnodes.load import Report, load
from tests.realnodes.releases import MissingCommitError, Release, former_release
from tests.realnodes.workload import (
    GANG_LABEL,
    JOB_LABEL,
    NAMESPACE,
    RELEASE,
    bound_members,
    component,
    delete_gang,
    failed_jobs,
    installed_kinds,
    killed_by_probes,
    members,
    not_ready,
    offer_seats,
    owned_objects,
    pending_reasons,
    previous_logs,
    restarts,
    running_members,
    services_pods,
    submit_gang,
    submit_kubernetes_gang,
    wait_for_gang,
    wait_until,
)

pytestmark = [pytest.mark.certify, pytest.mark.timeout(3000)]

_BOUND_S: Final = 60.0
_EXPLAINED_S: Final = 60.0
_READY_S: Final = 120.0
#: The deadline after which a gang that is bound in part is repaired or released, and the release.
_PARTLY_BOUND_S_MAX: Final = 35.0
#: Less than the two minutes without decisions that would follow if the streams were lost.
_WAITED_S_MAX: Final = 100.0
#: At that commit the container `reload` stopped servers that had no leader yet.
_RESTARTED_BY_FORMER: Final = ("tutti-nats-",)
_WAITS: Final = "NotEnoughResources"
#: While servers of NATS are replaced they may have no leader for some seconds.
_WHILE_STALE: Final = "ClusterViewStale"
_SAMPLED_S: Final = 3.0
_REVISION: Final = "tutti.dev/schema-revision"
_KIND: Final = "jobs.batch.volcano.sh"
#: Of a Tutti that is newer than both.
_NEWER: Final = "1000"


@pytest.fixture(scope="module")
def former(cluster: RealCluster) -> Release:
    """The former release; the nodes have its image beside the present one's."""
    try:
        release = former_release()
    except MissingCommitError as error:
        pytest.skip(str(error))
    cluster.load(release)
    return release


@pytest.fixture
def seats(cluster: RealCluster) -> Iterator[None]:
    """Room for one gang of four that requests seats."""
    offer_seats(cluster, 2)
    yield
    offer_seats(cluster, 0)


@pytest.mark.usefixtures("seats")
def test_gangs_keep_their_pods_and_their_turn_over_upgrade_rollback_and_upgrade(
    cluster: RealCluster, former: Release, tmp_path: Path, measured: Measured
) -> None:
    """The former release runs on its own chart with three servers of NATS."""
    install(cluster, highly_available(former), release=former)
    _assert_runs(cluster, former)
    submit_gang(cluster, "first", seats=1)
    wait_for_gang(cluster, "first", _BOUND_S)
    submit_kubernetes_gang(cluster, "own")
    wait_until(lambda: running_members(cluster, "own", GANG_LABEL) == 4, _BOUND_S, "own runs")
    _submit_waiting(cluster, "second")
    _submit_waiting(cluster, "third")

    def rolled(what: str, command: Callable[[], None], runs: str, waits: str) -> None:
        before = _pods(cluster, runs, "own")
        folder = tmp_path / what.replace(" ", "-")
        report = _under_load(cluster, folder, command, waits, measured, what)
        _assert_no_harm(report)
        worst_s = max(report.waited_s.values())
        measured(f"new gangs during the {what} waited at worst", worst_s)
        assert worst_s < _WAITED_S_MAX, report.waited_s
        assert _pods(cluster, runs, "own") == before

    present = cluster.release
    values = highly_available(present)
    rolled("upgrade", lambda: upgrade(cluster, values), "first", "second")
    _assert_runs(cluster, present)
    _free_for(cluster, "first", "second", "third")

    kinds = installed_kinds(cluster)
    revision = _revision(cluster)
    _set_revision(cluster, _NEWER)
    rolled("rollback", lambda: roll_back(cluster, 1), "second", "third")
    _assert_runs(cluster, former, may_restart=_RESTARTED_BY_FORMER)
    assert installed_kinds(cluster) == kinds
    assert _revision(cluster) == _NEWER, "the former Tutti changed a kind of a newer one"
    _set_revision(cluster, revision)
    _submit_waiting(cluster, "fourth")
    _free_for(cluster, "second", "third", "fourth")

    rolled("second upgrade", lambda: upgrade(cluster, values), "third", "fourth")
    _assert_runs(cluster, present)
    _free_for(cluster, "third", "fourth")
    delete_gang(cluster, "fourth")
    _assert_nothing_stays(cluster)


def _under_load(
    cluster: RealCluster,
    folder: Path,
    command: Callable[[], None],
    waits: str,
    measured: Measured,
    what: str,
) -> Report:
    """Run a command of Helm while gangs arrive, and watch the gang that waits."""
    with (
        load(cluster.control.admin_kubeconfig, folder) as stream,
        ThreadPoolExecutor(1) as pool,
    ):
        wait_until(stream.is_established, _BOUND_S, "gangs arrive and are bound")
        started_s = time.monotonic()
        running = pool.submit(command)
        while not running.done():
            assert stream.is_established()
            (reason,) = pending_reasons(cluster, waits)
            assert reason in {_WAITS, _WHILE_STALE}
            assert bound_members(cluster, waits) == 0
            time.sleep(_SAMPLED_S)
        running.result()
        measured(f"the {what} took", time.monotonic() - started_s)
        wait_until(lambda: not not_ready(cluster), _READY_S, "all services are ready")
        _wait_until_explained(cluster, waits)
        return stream.end()


def _assert_no_harm(report: Report) -> None:
    assert report.unbound == []
    assert report.lost == []
    assert report.refused == []
    longest_s = max(report.partly_bound_s.values())
    assert longest_s < _PARTLY_BOUND_S_MAX, report.partly_bound_s


def _assert_runs(
    cluster: RealCluster, release: Release, *, may_restart: tuple[str, ...] = ()
) -> None:
    """All services are ready, in the release's image, and none of them has failed, but for those
    whose pods' names begin like one of these."""
    assert not_ready(cluster) == {}
    killed = killed_by_probes(cluster)
    failed = {
        name: count
        for name, count in restarts(cluster).items()
        if count > killed.get(name, 0) and not name.startswith(may_restart)
    }
    assert failed == {}, previous_logs(cluster, failed)
    assert failed_jobs(cluster) == {}
    images = {
        container["image"]
        for pod in services_pods(cluster)
        for container in pod["spec"]["containers"]
        if component(pod) != "nats"
    }
    assert images == {image_of(cluster, release)}


def _submit_waiting(cluster: RealCluster, name: str) -> None:
    """Create a gang for which there is no seat, and wait until that is its reason."""
    submit_gang(cluster, name, seats=1)
    _wait_until_explained(cluster, name)


def _wait_until_explained(cluster: RealCluster, name: str) -> None:
    because = f"{name} waits for a seat"
    wait_until(lambda: pending_reasons(cluster, name) == [_WAITS], _EXPLAINED_S, because)


def _free_for(cluster: RealCluster, runs: str, next_one: str, later: str | None = None) -> None:
    """Delete the gang that has the seats; the one that waited longest gets them."""
    delete_gang(cluster, runs)
    wait_for_gang(cluster, next_one, _BOUND_S)
    wait_until(lambda: running_members(cluster, next_one) == 4, _BOUND_S, f"{next_one} runs")
    if later is not None:
        assert bound_members(cluster, later) == 0


def _pods(cluster: RealCluster, job: str, group: str) -> dict[str, tuple[str, str, int]]:
    """UID, node and restarts of each pod of two gangs that run."""
    pods = [*members(cluster, job, JOB_LABEL), *members(cluster, group, GANG_LABEL)]
    assert len(pods) == 8
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            pod["spec"]["nodeName"],
            sum(one["restartCount"] for one in pod["status"]["containerStatuses"]),
        )
        for pod in pods
    }


def _revision(cluster: RealCluster) -> str:
    (kind,) = (one for one in cluster.listed("crd") if one["metadata"]["name"] == _KIND)
    return str(kind["metadata"]["annotations"][_REVISION])


def _set_revision(cluster: RealCluster, revision: str) -> None:
    cluster.kubectl("annotate", "crd", _KIND, f"{_REVISION}={revision}", "--overwrite")


def _assert_nothing_stays(cluster: RealCluster) -> None:
    """Uninstall, and delete what stays by the documented command."""
    uninstall(cluster)
    wait_until(
        lambda: {kind for kind, _ in owned_objects(cluster)} <= {"Secret", "PersistentVolumeClaim"},
        _READY_S,
        "what the API server's collector deletes is deleted",
    )
    selected = f"--selector=app.kubernetes.io/instance={RELEASE}"
    cluster.kubectl("delete", "secret,pvc", selected, f"--namespace={NAMESPACE}")
    assert owned_objects(cluster) == set()
