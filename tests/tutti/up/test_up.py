"""`tutti up` on a real API server: started, used, broken and stopped as people and accidents do."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang, make_nodes, placed
from tests.tutti.up.running import Suite, healthy, suite, tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

LEASES = "/apis/coordination.k8s.io/v1/namespaces"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@pytest.fixture
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.admin_kubeconfig


@pytest.fixture
async def nodes(api: RawClient, empty_cluster: None) -> None:
    await make_nodes(api)


async def exists(api: RawClient, path: str) -> bool:
    try:
        await api.get(path)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


async def registered(api: RawClient) -> list[str]:
    found = await api.get(WEBHOOKS)
    return [each["metadata"]["name"] for each in found["items"]]


async def test_tutti_up_announces_readiness_binds_a_gang_and_leaves_nothing_behind(
    api: RawClient, namespace: str, nodes: None, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path) as running:
        ready = await running.wait_ready()
        assert [(row.service, row.ordinal) for row in ready.services] == [
            ("watcher", 0),
            ("gang-planner", 0),
            ("gang-planner", 1),
            ("binder", 0),
            ("binder", 1),
            ("controller", 0),
            ("admission-webhook", 0),
        ]
        lines = running.output.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith(f"tutti: ready in {ready.ready_s:.1f} s: 8 processes, NATS on ")
        assert "scheduler names tutti, kube-batch, volcano; webhook at https://127." in lines[0]
        assert ready.webhook.registered
        assert await registered(api)
        pids = {row.pid for row in ready.services} | {ready.nats_pid}
        assert pids <= {process.pid for process in running.look()}
        assert await exists(api, f"{LEASES}/kube-system/leases/tutti")
        await healthy(f"--data-dir={tmp_path / 'data'}")
        await make_gang(api, namespace, "train")
        await bound(api, namespace, "train")
        assert await running.stop() == 0
        assert not running.left()
        # On a slow machine it also reports waits, which are no errors.
        assert not error_lines(running.errors)
    assert not await registered(api)
    assert not await exists(api, f"{LEASES}/kube-system/leases/tutti")


def error_lines(errors: str) -> list[str]:
    """The lines that report an exception, or a process that did not end as it should."""
    marks = ("Traceback", "Error", "ended with status", "was killed by", "starts again")
    return [line for line in errors.splitlines() if any(mark in line for mark in marks)]


async def test_a_service_that_was_killed_is_started_again_and_gangs_are_bound(
    api: RawClient, namespace: str, nodes: None, kubeconfig: Path, tmp_path: Path
) -> None:
    """The supervisor has one way for all; integration/test_bad_luck.py kills each."""
    service = "watcher"
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        os.kill(running.pid(service), signal.SIGKILL)
        await make_gang(api, namespace, "train")
        await bound(api, namespace, "train")
        said = f"{service}-0 (pid {running.pid(service)}) was killed by SIGKILL, starts again"
        await eventually(
            lambda: said in running.errors, because="it is reported, whether or not it was needed"
        )


@pytest.mark.parametrize("lost_folder", ["store", "OUTCOMES"])
async def test_a_store_that_nats_lost_is_made_again_and_later_gangs_are_decided(
    lost_folder: str,
    api: RawClient,
    namespace: str,
    nodes: None,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planner starts cold: for so long as requests of before may last it decides nothing."""
    monkeypatch.setenv("TUTTI_COLD_START_WAIT_S", "3")
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        ready = await running.wait_ready()
        await make_gang(api, namespace, "before")
        await bound(api, namespace, "before")
        (folder,) = (tmp_path / "data" / "nats").rglob(lost_folder)
        folder.rename(tmp_path / "lost")
        os.kill(ready.nats_pid, signal.SIGKILL)
        lost_s = time.monotonic()
        await make_gang(api, namespace, "after")
        await bound(api, namespace, "after", timeout_s=60)
        assert time.monotonic() - lost_s > 3.0
        assert "ended with status 1" not in running.errors, "it is not reported as a bug"


async def test_nothing_outlives_a_tutti_up_that_was_killed_and_the_next_one_starts_at_once(
    api: RawClient, namespace: str, nodes: None, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook") as killed:
        await killed.wait_ready()
        await killed.stop(signal.SIGKILL)
        async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
            await running.wait_ready()
            assert not killed.left()
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        await make_gang(api, namespace, "train")
        await bound(api, namespace, "train")


async def test_a_second_signal_kills_a_service_that_hangs(kubeconfig: Path, tmp_path: Path) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        psutil.Process(running.pid("binder")).suspend()
        running.process.send_signal(signal.SIGINT)
        await eventually(lambda: running.pid("controller") not in running.left())
        assert running.pid("binder") in running.left()
        assert await running.stop(signal.SIGINT) == 0


async def refused(kubeconfig: Path, folder: Path, *flags: str, status: int = 1) -> str:
    """The errors of a `tutti up` that does not start."""
    async with suite(kubeconfig, folder, *flags) as running:
        async with asyncio.timeout(30):
            assert await running.process.wait() == status
        assert not running.output
        assert not running.ready_path.exists()
        return running.errors


@pytest.fixture
async def other(api: RawClient, namespace: str) -> AsyncIterator[str]:
    """Volcano's Lease, just renewed; returns the holders."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "vc-scheduler-0", "acquireTime": now, "renewTime": now}
    path = f"{LEASES}/{namespace}/leases"
    await api.create(path, {"metadata": {"name": "volcano"}, "spec": spec})
    yield f"Lease {namespace}/volcano (held by vc-scheduler-0 since "
    await api.delete(f"{path}/volcano")


async def test_a_name_of_another_active_scheduler_is_refused_unless_it_is_taken_over(
    other: str, kubeconfig: Path, tmp_path: Path
) -> None:
    errors = await refused(kubeconfig, tmp_path / "1", "--no-webhook")
    assert errors.startswith(f"tutti: scheduler name volcano is served by {other}")
    assert len(errors.splitlines()) == 1
    for number, flag in enumerate(("--scheduler-name=tutti", "--take-over")):
        async with suite(kubeconfig, tmp_path / f"a{number}", "--no-webhook", flag) as running:
            await running.wait_ready()


async def test_a_second_tutti_up_is_refused_by_cluster_and_by_data_folder(
    kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path / "1", "--no-webhook") as running:
        await running.wait_ready()
        errors = await refused(kubeconfig, tmp_path / "2", "--no-webhook")
        assert "another tutti up runs on this cluster: Lease kube-system/tutti" in errors
        flag = f"--data-dir={tmp_path / '1' / 'data'}"
        errors = await refused(kubeconfig, tmp_path / "3", "--no-webhook", "--take-over", flag)
        assert "another tutti up uses" in errors
        assert not running.process.returncode


async def test_a_cluster_that_cannot_be_reached_is_one_clear_line(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    text = control_plane.admin_kubeconfig.read_text()
    away = tmp_path / "away.kubeconfig"
    away.write_text(text.replace(control_plane.server, "https://127.0.0.1:1"))
    errors = await refused(away, tmp_path / "1")
    assert errors.startswith("tutti: cannot reach the cluster at https://127.0.0.1:1: ")
    assert len(errors.splitlines()) == 1
    errors = await refused(tmp_path / "none.kubeconfig", tmp_path / "2")
    assert "none.kubeconfig: cannot be read" in errors
    assert len(errors.splitlines()) == 1


async def test_a_service_that_refuses_its_flags_ends_the_whole_suite_with_its_words(
    kubeconfig: Path, tmp_path: Path
) -> None:
    flags = ("--no-webhook", "--scheduler-name=No_Name")
    errors = await refused(kubeconfig, tmp_path, *flags, status=2)
    assert "watcher-0 refuses its flags: watcher: --scheduler-name" in errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("actions: allocate, dance", "unknown action 'dance'"),
        ("tiers: [{plugins: [{name: proportoin}]}]", "did you mean 'proportion'?"),
    ],
    ids=["action", "plugin"],
)
async def test_a_configuration_with_a_wrong_name_is_refused_on_the_terminal(
    kubeconfig: Path, tmp_path: Path, text: str, words: str
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(text)
    flags = ("--no-webhook", f"--scheduler-conf={conf}")
    errors = await refused(kubeconfig, tmp_path / "up", *flags, status=2)
    (line,) = [one for one in errors.splitlines() if words in one]
    assert line.startswith("tutti: gang-planner-")
    assert f"refuses its flags: gang-planner: --scheduler-conf {conf}: " in line


async def test_nats_that_was_given_is_used_and_left_running(
    kubeconfig: Path, tmp_path: Path, nats_server: object
) -> None:
    from tutti.nats_server import NatsServer

    assert isinstance(nats_server, NatsServer)
    url = nats_server.url
    async with suite(kubeconfig, tmp_path, "--no-webhook", f"--nats={url}") as running:
        ready = await running.wait_ready()
        assert (ready.nats_url, ready.nats_pid) == (url, 0)
        assert await running.stop() == 0
    assert psutil.pid_exists(nats_server.pid)


async def test_replicas_share_the_work_and_flags_choose_their_number(
    api: RawClient, namespace: str, nodes: None, kubeconfig: Path, tmp_path: Path
) -> None:
    flags = ("--replicas=binder=2", "--replicas=watcher=2", "--replicas=controller=0")
    async with suite(kubeconfig, tmp_path, "--no-webhook", *flags) as running:
        rows = (await running.wait_ready()).services
        titles = [f"{row.service}-{row.ordinal}" for row in rows]
        assert titles == [
            "watcher-0",
            "watcher-1",
            "gang-planner-0",
            "gang-planner-1",
            "binder-0",
            "binder-1",
        ]
        await make_gang(api, namespace, "train")
        await bound(api, namespace, "train")


async def test_a_gang_that_does_not_fit_waits_whole_and_why_says_so_to_its_user(
    api: RawClient, namespace: str, nodes: None, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        await make_gang(api, namespace, "big", members=9, least=9)

        async def reported() -> str:
            arguments = ("why", "podgroup/big", f"--namespace={namespace}")
            status, text, errors = await tutti(*arguments, f"--kubeconfig={kubeconfig}")
            assert status == 0, errors
            assert text.startswith("podgroup/big waits: ")
            assert " 9, needs 9: 9 Pending" in text
            assert "NotEnough" in text
            return text

        await eventually(reported, because="all of its pods are counted")
        assert not await placed(api, namespace, "big")


def test_the_harness_sees_what_is_left(tmp_path: Path) -> None:
    """The other tests' "nothing is left" would hold by itself if it did not."""
    mine = Suite.__new__(Suite)
    mine.seen = {os.getpid(): None}
    assert not mine.left()
    from tutti.lifeline import start_ticks

    mine.seen = {os.getpid(): start_ticks(os.getpid())}
    assert mine.left() == [os.getpid()]
