"""The metrics that operators use exist in a running Tutti; a dead endpoint harms no service."""

import re
import socket
from pathlib import Path

import aiohttp
import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.nodes import pod_manifest
from tests.support.waiting import eventually
from tests.tracing.queries import check, exposed_in, queries
from tests.tutti.up.gangs import bound, make_gang
from tests.tutti.up.running import Suite, suite

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

EVERYWHERE = ("ready", "active", "spans_lost_total", "event_loop_tasks", "strays_total")
IMPORTANT = {
    "watcher": (
        "watch_events_total",
        "listed_objects_total",
        "changes_sent_total",
        "appends_total",
        "append_bytes_total",
        "flush_seconds_bucket",
        "epoch",
        "objects",
        "relists_total",
        "unreadable",
        "snapshots_total",
    ),
    "gang-planner": (
        "decisions_total",
        "bindings_total",
        "gangs_started_total",
        "verdicts_total",
        "gangs",
        "cycles_total",
        "cycle_seconds_bucket",
        "append_seconds_bucket",
        "gang_latency_seconds_bucket",
        "gang_waiting_seconds_bucket",
        "partial_gang_seconds_total",
        "decisions_open",
        "outcomes_total",
        "log_lag_seconds",
        "view_age_seconds",
    ),
    "binder": (
        "decisions_total",
        "pods_bound_total",
        "decision_seconds_bucket",
        "decisions_in_progress",
        "abandoned_total",
    ),
    "controller": ("writes_total", "report_seconds_bucket", "retries_total", "gangs_waiting"),
}


async def texts(running: Suite, accept: str = "*/*") -> list[tuple[str, str]]:
    """What each process shows, with its service."""
    found: list[tuple[str, str]] = []
    async with aiohttp.ClientSession(headers={"Accept": accept}) as session:
        for row in running.ready().services:
            url = f"http://127.0.0.1:{row.http_port}/metrics"
            async with session.get(url) as answer:
                found.append((row.service, await answer.text()))
    return found


async def scraped(running: Suite) -> dict[str, dict[str, float]]:
    """Service -> series -> the sum over its replicas."""
    found: dict[str, dict[str, float]] = {}
    for service, text in await texts(running):
        series = found.setdefault(service, {})
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                series[name] = series.get(name, 0.0) + float(value)
    return found


async def make_gpu_gang(client: RawClient, queue: str) -> None:
    """A gang of one pod with a device, in a queue of its own."""
    await client.create(
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": queue},
            "spec": {"weight": 1, "capability": {"cpu": "8"}},
        },
    )
    await client.create(
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "gpu"},
            "spec": {"minMember": 1, "queue": queue},
        },
    )
    pod = pod_manifest(
        "gpu-0",
        requests={"cpu": "1", "nvidia.com/gpu": "1"},
        annotations={"scheduling.k8s.io/group-name": "gpu"},
    )
    await client.create("/api/v1/namespaces/default/pods", pod)


def total(series: dict[str, float], name: str) -> float:
    return sum(value for key, value in series.items() if re.split(r"[{ ]", key)[0] == name)


def names_hold(service: str, series: dict[str, float]) -> None:
    """What a service must show is there, and every series says whose it is."""
    prefix = f"tutti_{service.replace('-', '_')}_"
    have = {re.split(r"[{ ]", key)[0] for key in series}
    assert {prefix + name for name in IMPORTANT[service]} | {
        f"tutti_{one}" for one in EVERYWHERE
    } <= have
    own_series = [key for key in series if f'component="{service}"' in key]
    assert any(key.startswith("tutti_build_info{") for key in own_series), service
    others = [
        name
        for name in series
        if not name.startswith(("process_", "volcano_", prefix)) and name not in own_series
    ]
    assert not others, "every series carries its service, in its name or as a label"
    assert len(series) < 400, "the number of series is bounded"


async def test_the_important_metrics_exist_and_count_what_was_done(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path / "up") as running:
        await running.wait_ready()
        await make_gang(client, "default", "train")
        await make_gang(client, "default", "huge", members=2, least=500)
        await bound(client, "default", "train")

        async def settled() -> dict[str, dict[str, float]]:
            found = await scraped(running)
            planner = found["gang-planner"]
            assert planner['tutti_gang_planner_gangs{phase="Running"}'] == 1.0
            assert planner["tutti_gang_planner_decisions_open"] == 0.0
            assert found["watcher"]['tutti_watcher_objects{kind="pod"}'] == 5.0
            assert total(found["controller"], "tutti_controller_report_seconds_count") >= 2
            # Active and standby both read it.
            assert planner['tutti_gang_planner_outcomes_total{result="whole"}'] == 2.0
            for service in IMPORTANT:
                names_hold(service, found[service])
            return found

        found = await eventually(settled, timeout_s=40.0)
        await make_gpu_gang(client, "gpus")
        await bound(client, "default", "gpu", members=1)

        async def answered() -> int:
            exposed = exposed_in([text for _, text in await texts(running)])
            asked = list(queries())
            for query in asked:
                check(query, exposed)
            return len(asked)

        because = "alerts and dashboard ask for what is exposed"
        await eventually(answered, timeout_s=40.0, because=because)
        exemplars = [
            line
            for _, text in await texts(running, "application/openmetrics-text; version=1.0.0")
            for line in text.splitlines()
            if line.startswith("tutti_gang_planner_gang_latency_seconds_bucket") and "# {" in line
        ]
        assert any('trace_id="' in line for line in exemplars)
    planner, binder = found["gang-planner"], found["binder"]
    assert planner["tutti_gang_planner_decisions_total"] == 1.0
    assert planner["tutti_gang_planner_bindings_total"] == 3.0
    assert planner["tutti_gang_planner_gangs_started_total"] == 1.0
    for phase in ("queued", "bound", "total"):
        latency = f'tutti_gang_planner_gang_latency_seconds_count{{phase="{phase}"}}'
        assert planner[latency] == 1.0, phase
    waited = 'tutti_gang_planner_gang_waiting_seconds_count{queue="default"}'
    assert planner[waited] == 1.0
    assert planner["tutti_gang_planner_partial_gang_seconds_total"] == 0.0
    assert total(binder, "tutti_api_requests_total") >= 3.0
    watched = 'tutti_api_requests_total{code="200",component="watcher",verb="WATCH"}'
    assert found["watcher"][watched] > 0
    assert (
        planner['tutti_gang_planner_gangs{phase="Inqueue"}']
        + total(
            {key: value for key, value in planner.items() if 'phase="Pending"' in key},
            "tutti_gang_planner_gangs",
        )
        == 1.0
    )
    assert 0.0 <= planner["tutti_gang_planner_view_age_seconds"] < 10.0
    assert binder["tutti_binder_pods_bound_total"] == 3.0
    assert binder['tutti_binder_decisions_total{reason="Done"}'] == 1.0


async def test_a_dead_endpoint_loses_spans_which_are_counted_and_delays_nothing(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # Bound and closed: no server answers there.
        port = taken.getsockname()[1]
    flags = ("--no-webhook", f"--otlp=http://127.0.0.1:{port}")
    async with suite(kubeconfig, tmp_path / "up", *flags) as running:
        await running.wait_ready()
        await make_gang(client, "default", "train")
        await bound(client, "default", "train")

        async def counted() -> bool:
            found = await scraped(running)
            return all(total(found[service], "tutti_spans_lost_total") > 0 for service in IMPORTANT)

        await eventually(counted, timeout_s=30.0)
        assert not running.errors
