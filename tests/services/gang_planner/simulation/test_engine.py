"""Small traces whose starts can be computed by hand."""

import io
import sys
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.run_limits import ReserveRules
from services.gang_planner.core.verdicts.book import Book
from services.gang_planner.simulation import __main__ as program
from services.gang_planner.simulation.engine import Engine, configuration_of
from shared.contracts.simulation import JobRun, SimulatedJob, SimulationPlan, SimulationResult
from shared.model.objects import Node, Queue
from tests.services.gang_planner.core.scene import make_shape

TIERS = "actions: enqueue, allocate, backfill\ntiers: [{plugins: [{name: gang}]}]"
FIFO = f"{TIERS}\nconfigurations: [{{name: reserve, arguments: {{reservations: 0}}}}]"
PREEMPT = """
actions: enqueue, allocate, gangpreempt
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
NODE = Node(uid="n", name="n", resource_version=1, allocatable=(("cpu", 10_000), ("pods", 10_000)))
ONE_CPU = make_shape({"cpu": 1000})


def job(name: str, arrival_s: int, cpus: int, run_s: int, **fields: Any) -> SimulatedJob:
    return SimulatedJob(
        name=name,
        arrival_ms=arrival_s * 1000,
        run_ms=run_s * 1000,
        queue="default",
        members=((cpus, ONE_CPU),),
        **fields,
    )


def plan_of(*jobs: SimulatedJob, conf: str = FIFO, nodes: tuple[Node, ...] = (NODE,)) -> Any:
    queue = Queue(uid="q", dialect="volcano", name="default", resource_version=1, state="Open")
    return SimulationPlan(configuration=conf, nodes=nodes, queues=(queue,), jobs=jobs)


def starts(result: SimulationResult) -> dict[int, list[tuple[float, float, str]]]:
    """(start, end, how it ended) of each run, by job."""
    by_job: dict[int, list[tuple[float, float, str]]] = {}
    for run in result.runs:
        by_job.setdefault(run.job, []).append((run.start_ms / 1000, run.end_ms / 1000, run.end))
    return by_job


def test_gangs_start_in_their_order_and_small_ones_fill_what_is_left() -> None:
    # Ten CPUs. `a` takes six until 100. `b` needs eight: it waits until then. `c` needs four and
    # fills what is left, until 150, so that `b` waits for it, too. `d` needs two, waits for `a`,
    # and takes two of its six at 100, until 180. At 150 `c` gives back what `b` lacks.
    jobs = job("a", 0, 6, 100), job("b", 10, 8, 50), job("c", 20, 4, 130), job("d", 30, 2, 80)
    result = Engine(plan_of(*jobs)).run()
    assert starts(result) == {
        0: [(0, 100, "finished")],
        1: [(150, 200, "finished")],
        2: [(20, 150, "finished")],
        3: [(100, 180, "finished")],
    }
    assert result.end_ms == 200_000
    assert result.problem == ""


def test_gangs_that_arrive_or_end_at_one_instant_are_seen_together() -> None:
    # Both halves end at 50: the whole machine is free for `c` at this instant.
    result = Engine(plan_of(job("a", 0, 5, 50), job("b", 0, 5, 50), job("c", 1, 10, 9))).run()
    assert starts(result)[2] == [(50, 59, "finished")]


def test_a_preempted_job_starts_again_from_its_beginning() -> None:
    result = Engine(
        plan_of(job("low", 0, 8, 100), job("high", 40, 8, 20, priority=9), conf=PREEMPT)
    ).run()
    assert starts(result) == {
        0: [(0, 40, "evicted"), (60, 160, "finished")],
        1: [(40, 60, "finished")],
    }


def with_reserve(text: str) -> str:
    return f"{TIERS}\nconfigurations: [{{name: reserve, arguments: {text}}}]"


def test_a_job_that_runs_beyond_its_limit_is_evicted_there_and_does_not_return() -> None:
    # `b` waits for `a`, whose run would take 900 s.
    jobs = job("a", 0, 10, 900, limit_s=300), job("b", 1, 10, 50, limit_s=50)
    result = Engine(plan_of(*jobs)).run()
    assert starts(result) == {0: [(0, 300, "limit")], 1: [(300, 350, "finished")]}


@pytest.mark.parametrize(
    ("reserve", "large_starts"), [("{reservations: 0}", 2000), ("{reservations: 1}", 1000)]
)
def test_a_reservation_starts_a_large_gang_before_small_ones_that_would_delay_it(
    reserve: str, large_starts: float
) -> None:
    # `large` waits for `a`. Without its reservation `b` takes five of the ten CPUs until 2,000.
    # `c` ends before the reserved instant, and starts at once.
    small = job("b", 20, 5, 1980, limit_s=1980), job("c", 30, 5, 100, limit_s=100)
    jobs = job("a", 0, 5, 1000, limit_s=1000), job("large", 10, 10, 100, limit_s=100), *small
    result = starts(Engine(plan_of(*jobs, conf=with_reserve(reserve))).run())
    assert result[1][0][0] == large_starts
    assert result[3][0][0] == (30 if large_starts == 1000 else 1000)


def test_a_configuration_that_states_no_reservations_has_those_of_the_service() -> None:
    assert configuration_of("").reserve_rules.per_root == 1
    assert configuration_of(with_reserve("{reservations: 0}")).reserve_rules.per_root == 0
    stated = with_reserve("{reservations: 3, heldPercent: 20, heldSeconds: 60}")
    assert configuration_of(stated).reserve_rules == ReserveRules(3, 20, 60_000)


def test_a_job_that_never_fits_has_no_run_and_ends_nothing() -> None:
    result = Engine(plan_of(job("a", 0, 11, 100), job("b", 1, 10, 100))).run()
    assert starts(result) == {1: [(1, 101, "finished")]}
    assert result.problem == ""


def test_a_job_that_never_fits_gets_no_reservation() -> None:
    conf = with_reserve("{reservations: 5}")
    result = Engine(plan_of(job("a", 0, 11, 100), job("b", 1, 10, 100), conf=conf)).run()
    assert starts(result) == {1: [(1, 101, "finished")]}
    assert result.cycles < 10


def test_a_stream_of_jobs_without_limits_leaves_room_for_a_large_one_after_half_an_hour() -> None:
    # Two CPUs each minute for ten minutes keep eight of ten from being free at once.
    jobs = [job(f"small-{n}", 60 * n, 2, 600) for n in range(120)]
    jobs.insert(6, job("large", 301, 8, 100))
    runs = [
        starts(Engine(plan_of(*jobs, conf=with_reserve(text))).run())
        for text in ("{reservations: 0}", "{reservations: 1}")
    ]
    without, beside = (by_job[6][0][0] for by_job in runs)
    assert without > 7_200
    assert 301 + 1_800 <= beside <= 301 + 1_800 + 600


def test_each_end_of_a_job_is_reported() -> None:
    ended: list[int] = []
    Engine(plan_of(job("a", 0, 1, 10), job("b", 0, 1, 20)), ended.append).run()
    assert ended == [1, 2]


def test_an_invalid_configuration_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown key"):
        Engine(plan_of(conf="action: allocate"))


def test_the_program_reads_a_plan_and_writes_progress_and_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = run_program(monkeypatch, plan_of(job("a", 0, 1, 10), job("b", 0, 1, 20)))
    assert [line.get("ended") for line in lines] == [1, 2, None]
    result = msgspec.convert(lines[-1], SimulationResult)
    assert result.runs == (
        JobRun(job=0, start_ms=0, end_ms=10_000),
        JobRun(job=1, start_ms=0, end_ms=20_000),
    )


def test_the_program_reports_an_invalid_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = run_program(monkeypatch, plan_of(conf="action: allocate"))
    assert "unknown key" in line["problem"]


def run_program(monkeypatch: pytest.MonkeyPatch, plan: SimulationPlan) -> list[Any]:
    written = io.BytesIO()
    encoded = io.BytesIO(msgspec.msgpack.encode(plan))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(encoded))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, write_through=True))
    monkeypatch.setattr("shared.runtime.collector.relax", lambda: None)
    program.main()
    return [msgspec.json.decode(line) for line in written.getvalue().splitlines()]


def test_decisions_are_the_same_with_and_without_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(str(n), n * 7 % 60, n * 5 % 10 + 1, n * 11 % 90 + 1) for n in range(60)]
    silent = Engine(plan_of(*sorted(jobs, key=lambda each: each.arrival_ms))).run()
    monkeypatch.setattr(
        "services.gang_planner.simulation.engine.Planner",
        lambda configuration, _: Planner(configuration),
    )
    spoken = Engine(plan_of(*sorted(jobs, key=lambda each: each.arrival_ms))).run()
    assert silent.runs == spoken.runs
    assert isinstance(Planner(parse_configuration(FIFO), Book(publishes=False)), Planner)
