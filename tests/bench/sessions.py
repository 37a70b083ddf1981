"""Builders of runs and sessions with plain numbers."""

from bench.bars import DrainCase
from bench.drain import DrainRun
from bench.live import LiveRun
from bench.meters import ProcessCost
from bench.session import Session
from bench.yardstick import CONCURRENCIES, Yardstick


def yardstick(*rates: float, apiserver_ms: float = 1.0) -> Yardstick:
    return Yardstick(
        load="20 x 500",
        pods=10_000,
        watches=3,
        rates=dict(zip(CONCURRENCIES, rates, strict=True)),
        apiserver_ms_per_pod=apiserver_ms,
        etcd_ms_per_pod=0.2,
    )


def drain_run(
    *,
    contender: str = "tutti",
    load: str = "20 x 500",
    pods: int = 10_000,
    rate: float = 800.0,
    cpu_s: float = 8.0,
    apiserver_ms: float = 1.2,
    first_binding_s: float = 1.5,
) -> DrainRun:
    return DrainRun(
        contender=contender,
        load=load,
        pods=pods,
        watches=3,
        ready_s=2.0,
        first_binding_s=first_binding_s,
        last_binding_s=first_binding_s + pods / rate,
        rate=rate,
        longest_pause_s=0.1,
        bound_by_second=(pods,),
        cpu_s_at_last_binding=cpu_s,
        cpu_s=cpu_s,
        was_quiet=True,
        processes=(
            ProcessCost(role="watcher", pid=1, cpu_s=cpu_s / 2, peak_bytes=2**26),
            ProcessCost(role="gang-planner", pid=2, cpu_s=cpu_s / 4, peak_bytes=2**26),
            ProcessCost(role="gang-planner", pid=3, cpu_s=cpu_s / 4, peak_bytes=2**26),
        ),
        peak_bytes=3 * 2**26,
        idle_core_percent=1.0,
        apiserver_ms_per_pod=apiserver_ms,
        etcd_ms_per_pod=0.2,
        writes={"POST pods/binding": pods, "PATCH podgroups": 5},
        writes_while_binding={"POST pods/binding": pods, "PATCH podgroups": 2},
        pods_per_node_max=10,
    )


def drain_case(run: DrainRun, limit: float = 1000.0, bare_ms: float = 1.0) -> DrainCase:
    each = yardstick(limit, 1, apiserver_ms=bare_ms)
    return DrainCase(before=each, run=run, after=each)


def live_run(*, p50_ms: float = 200.0, contender: str = "tutti") -> LiveRun:
    return LiveRun(
        contender=contender,
        ready_s=1.0,
        created_per_s=300.0,
        creation_p50_ms=90.0,
        creation_p99_ms=250.0,
        broken_watches=0,
        crowd_p50_ms=p50_ms,
        crowd_p99_ms=p50_ms * 2,
        one_p50_ms=15.0,
        one_max_ms=30.0,
        one_all_ms=(15.0,),
        idle_core_percent=1.0,
        watches=3,
    )


def session(
    *,
    drains: list[DrainCase],
    lives: list[LiveRun],
    started_at: str = "2026-01-02T03:04:05+00:00",
) -> Session:
    return Session(
        started_at=started_at,
        commit="0123456789ab",
        machine={"cpu": "Test", "cores": 2, "memory_bytes": 2**34, "load_average": 0.1},
        versions={"python": "3.11.7"},
        nodes=1000,
        runs=1,
        drains=drains,
        lives=lives,
    )
