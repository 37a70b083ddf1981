"""`tutti up --observe` beside a scheduler that binds pod by pod, on a real API server, with a token
that may only read.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from shared.contracts.observing import GangObserved, Observation
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import bind_pod
from tests.support.counting_proxy import CountingProxy, counting_proxy
from tests.support.waiting import eventually
from tests.tutti.up.gangs import make_gang, make_nodes, placed
from tests.tutti.up.running import Suite, suite, tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces"
SEEN_S = 30.0


@pytest.fixture
async def reader(
    api: RawClient, namespace: str, control_plane: ControlPlane
) -> AsyncIterator[Path]:
    """The kubeconfig of a service account that may get, list and watch, and nothing else."""
    await api.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "eye"}}
    )
    role: Object = {
        "metadata": {"name": namespace},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    group = "rbac.authorization.k8s.io"
    binding: Object = {
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "eye"}],
    }
    await api.create(f"{RBAC}/clusterroles", role)
    await api.create(f"{RBAC}/clusterrolebindings", binding)
    yield control_plane.kubeconfig_for_service_account(namespace, "eye")
    await api.delete(f"{RBAC}/clusterrolebindings/{namespace}")
    await api.delete(f"{RBAC}/clusterroles/{namespace}")


@pytest.fixture
async def proxy(
    control_plane: ControlPlane, reader: Path, tmp_path: Path
) -> AsyncIterator[CountingProxy]:
    """A proxy that `reader` goes through from here on."""
    async with counting_proxy(control_plane, tmp_path) as running:
        await asyncio.to_thread(_redirect, reader, control_plane.server, running.url)
        yield running


def _redirect(kubeconfig: Path, before: str, after: str) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace(before, after))


async def other_scheduler_binds(
    api: RawClient, namespace: str, name: str, node: str = "node-0"
) -> None:
    await bind_pod(api, await api.get(f"/api/v1/namespaces/{namespace}/pods/{name}"), node)


class Report:
    """The report file of a suite."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Observation | None:
        if not self.path.is_file():
            return None
        return msgspec.json.decode(self.path.read_bytes(), type=Observation)

    def row(self, gang: str) -> GangObserved:
        found = self.read()
        assert found is not None, "no report yet"
        rows = [each for each in found.gangs if each.gang == gang]
        assert len(rows) == 1, found.gangs
        return rows[0]


@pytest.fixture
async def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv("TUTTI_REPORT_S", "0.1")
    monkeypatch.setenv("TUTTI_STAND_S", "0.5")
    return Report(tmp_path / "report.json")


async def test_an_observation_reports_both_schedulers_and_writes_nothing(
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    reader: Path,
    proxy: CountingProxy,
    report: Report,
    tmp_path: Path,
) -> None:
    await make_nodes(api, 2)
    async with suite(reader, tmp_path, "--observe", f"--report={report.path}") as running:
        ready = await running.wait_ready()
        assert {row.service for row in ready.services} == {"watcher", "gang-planner", "observer"}
        assert running.output.endswith("observing only, nothing is written to the cluster\n")
        for gang in ("whole", "half", "left"):
            await make_gang(api, namespace, gang, members=2, least=2, scheduler_name="volcano")
        versions = await versions_of_groups(api, namespace)
        await _the_other_scheduler_acts(api, namespace, report)
        await _a_killed_observer_goes_on_from_the_log(running, namespace, report)
        half, left = report.row(f"{namespace}/half"), report.row(f"{namespace}/left")
        assert half.partial_since_ms == half.first_bound_ms > half.decided_ms > 0
        assert (half.whole_ms, left.first_bound_ms, left.failed) == (0, 0, 0)
        status, text, errors = await tutti(
            "observe", "report", f"--data-dir={tmp_path / 'data'}", "--output=text"
        )
        assert status == 0, errors
        # Others' gangs may be on the cluster, too.
        assert all(f"{namespace}/{gang}" in text for gang in ("whole", "half", "left"))
        assert "DEFECT" not in text
        assert await running.stop() == 0
        _nothing_was_written(running, proxy)
    assert await placed(api, namespace, "left") == []
    assert await placed(api, namespace, "half") == ["half-0"]
    assert await versions_of_groups(api, namespace) == versions


async def _the_other_scheduler_acts(api: RawClient, namespace: str, report: Report) -> None:
    """It binds one gang whole, pod by pod, half of another, and nothing of the third."""

    def all_are_decided_again() -> bool:
        # What stood for half a second went back to waiting, and was decided again.
        rows = [report.row(f"{namespace}/{gang}") for gang in ("whole", "half", "left")]
        assert all(row.decided_ms >= row.complete_ms > 0 for row in rows)
        return all(row.proved + row.overtaken >= 2 for row in rows)

    await eventually(all_are_decided_again, timeout_s=SEEN_S)
    for gang in ("whole", "half"):
        await other_scheduler_binds(api, namespace, f"{gang}-0")

    def two_are_partial() -> bool:
        rows = [report.row(f"{namespace}/{gang}") for gang in ("whole", "half")]
        return all(row.partial_since_ms and row.bound == 1 for row in rows)

    await eventually(two_are_partial, timeout_s=SEEN_S)
    await other_scheduler_binds(api, namespace, "whole-1")

    def one_is_whole() -> bool:
        row = report.row(f"{namespace}/whole")
        assert row.whole_ms, "not yet"
        return bool(row.partial_ms and not row.partial_since_ms and not row.failed)

    await eventually(one_is_whole, timeout_s=SEEN_S)
    half = report.row(f"{namespace}/half")
    assert half.first_bound_ms > half.decided_ms > 0


async def _a_killed_observer_goes_on_from_the_log(
    running: Suite, namespace: str, report: Report
) -> None:
    """The next one reads what this one knew from its report and the log, and rows continue."""
    before = [report.row(f"{namespace}/{gang}") for gang in ("whole", "half", "left")]
    os.kill(running.pid("observer"), signal.SIGKILL)
    await eventually(lambda: "observer-0 (pid" in running.errors, timeout_s=SEEN_S)
    killed = report.path.stat().st_mtime_ns

    def it_writes_again() -> bool:
        # The one that was killed may have written after what was read above.
        return report.path.stat().st_mtime_ns > killed

    await eventually(it_writes_again, timeout_s=SEEN_S)

    def it_remembers() -> bool:
        for row in before:
            now = report.row(row.gang)
            assert (now.complete_ms, now.decided_ms) == (row.complete_ms, row.decided_ms)
            assert (now.first_bound_ms, now.whole_ms) == (row.first_bound_ms, row.whole_ms)
            assert not now.before
        return True

    await eventually(it_remembers, timeout_s=SEEN_S)


def _nothing_was_written(running: Suite, proxy: CountingProxy) -> None:
    assert len(proxy.asked) > 20, "it was asked through the proxy"
    assert proxy.writes() == []
    reported = running.errors
    assert "tutti: observer-0 " in reported, "it was killed"
    assert "cannot look" not in reported
    assert "Lease" not in reported


async def versions_of_groups(api: RawClient, namespace: str) -> dict[str, str]:
    found = await api.get(f"{GROUPS}/{namespace}/podgroups")
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found["items"]}


async def test_the_proxy_would_have_seen_a_write(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, reader: Path, proxy: CountingProxy
) -> None:
    """`tutti up` without `--observe` tries to write, so the count above means something."""
    async with suite(reader, tmp_path, "--no-webhook") as running:
        await eventually(proxy.writes, timeout_s=SEEN_S, because="a Lease is tried")
        assert running.process.returncode is None
