"""What a planner counts: how long whole gangs take, and how long any is bound in part."""

import logging

import pytest

from services.gang_planner.inbox import OutcomeArrival
from services.gang_planner.reporting import Reporting
from shared.contracts.decisions import Binding, Cycle, GangDecision, GangStarted, NoteOpened
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.verdicts import GangPhase, Verdict, Why
from shared.telemetry.metrics import Metrics

TRACE = "ab" * 16
LATENCY = "tutti_gang_planner_gang_latency_seconds"
WAITING = "tutti_gang_planner_gang_waiting_seconds"


class Reports:
    """A planner's reporting with a clock of the test's own."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.metrics = Metrics("gang-planner")
        self.reporting = Reporting(self.metrics, lambda: self.now_ms)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    def decide(self, *, attempt: int = 1, quorum: int = 2, trace_id: str = TRACE) -> None:
        self.reporting.appended(
            1,
            GangDecision(
                gang_id="g",
                gang="team/g",
                dialect="volcano",
                epoch=1,
                attempt=attempt,
                bindings=(Binding(uid="u", namespace="team", name="p", node="n"),),
                quorum=quorum,
                trace_id=trace_id,
                first_seen_ms=90_000,
                cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=100_000, configuration="c"),
            ),
        )

    def settle(
        self, *, last_bound_ms: int = 100_250, unbound: bool = False, stored_ms: int = 0
    ) -> None:
        members = (Member(uid="u", node="n", result="refused", code=403),) if unbound else ()
        outcome = Outcome(
            gang_id="g",
            decision_seq=1,
            epoch=1,
            binder="b",
            delivered=1,
            bound=1,
            members=members,
            last_bound_ms=last_bound_ms,
        )
        self.reporting.arrived([OutcomeArrival(1, outcome, b"", stored_ms or self.now_ms)])


def test_a_gang_is_timed_from_first_seen_over_its_decision_to_its_last_binding() -> None:
    reports = Reports()
    reports.decide()
    reports.settle()
    found = {
        phase: reports.value(f"{LATENCY}_sum", phase=phase)
        for phase in ("queued", "bound", "total")
    }
    assert found == {"queued": 10.0, "bound": 0.25, "total": 10.25}
    text = reports.metrics.exposition("application/openmetrics-text").body.decode()
    assert f'trace_id="{TRACE}"' in text


def say(reports: Reports, queue: str) -> None:
    reports.reporting.published(
        Verdict(
            gang_id="g",
            epoch=1,
            at_ms=reports.now_ms,
            dialect="volcano",
            namespace="team",
            name="g",
            queue=queue,
            phase="Running",
        )
    )


def test_a_gangs_waiting_time_is_reported_once_under_its_queue() -> None:
    reports = Reports()
    reports.decide()
    reports.settle()
    say(reports, "research")
    say(reports, "research")
    assert reports.value(f"{WAITING}_count", queue="research") == 1
    assert reports.value(f"{WAITING}_sum", queue="research") == 10.25


def test_queues_beyond_the_fiftieth_share_a_series() -> None:
    reports = Reports()
    for number in range(52):
        reports.decide()
        reports.settle()
        say(reports, f"queue-{number}")
    assert reports.value(f"{WAITING}_count", queue="queue-49") == 1
    assert reports.value(f"{WAITING}_count", queue="queue-50") is None
    assert reports.value(f"{WAITING}_count", queue="(others)") == 2


def test_of_many_gangs_in_a_second_one_gets_its_trace_reported() -> None:
    reports = Reports()
    bucket = f'{LATENCY}_bucket{{le="10.0",phase="queued"}}'

    def exemplar() -> str:
        text = reports.metrics.exposition("application/openmetrics-text").body.decode()
        (line,) = [one for one in text.splitlines() if one.startswith(bucket)]
        return line.partition("# ")[2]

    reports.decide()
    assert f'trace_id="{TRACE}"' in exemplar()
    reports.now_ms += 999
    reports.decide(trace_id="cd" * 16)
    assert f'trace_id="{TRACE}"' in exemplar()
    reports.now_ms += 1
    reports.decide(trace_id="ef" * 16)
    assert f'trace_id="{"ef" * 16}"' in exemplar()


def test_a_later_attempt_and_members_beyond_the_quorum_are_no_gangs_start() -> None:
    reports = Reports()
    reports.decide(attempt=2)
    reports.settle()
    assert reports.value(f"{LATENCY}_count", phase="bound") == 1
    reports.decide(quorum=0)
    reports.settle()
    assert reports.value(f"{LATENCY}_count", phase="bound") == 1
    assert reports.value(f"{LATENCY}_count", phase="queued") == 0
    assert reports.value(f"{LATENCY}_count", phase="total") == 0


def test_a_gang_of_which_a_member_was_refused_was_not_bound() -> None:
    reports = Reports()
    reports.decide()
    reports.settle(unbound=True)
    assert reports.value(f"{LATENCY}_count", phase="bound") == 0


def test_the_time_of_gangs_bound_in_part_goes_on_between_cycles_and_stops_with_the_last() -> None:
    reports = Reports()
    partial = "tutti_gang_planner_partial_gang_seconds_total"
    reports.now_ms += 5_000
    assert reports.value(partial) == 0.0
    reports.reporting.observe({"Running": 7, "Repairing": 2, "Releasing": 1}, 0, 0, 0)
    reports.now_ms += 2_000
    assert reports.value(partial) == 6.0
    reports.reporting.observe({"Running": 8, "Repairing": 0, "Releasing": 1}, 0, 0, 0)
    reports.now_ms += 1_000
    assert reports.value(partial) == 7.0
    reports.reporting.observe({"Running": 8, "Repairing": 0, "Releasing": 0}, 0, 0, 0)
    reports.now_ms += 60_000
    assert reports.value(partial) == 7.0


def test_overruns_of_limits_for_planning_and_open_reservations_are_counted() -> None:
    reports = Reports()
    for number, reason in enumerate(("Running", "Overrun", "Overrun")):
        note = NoteOpened(
            gang_id=f"g{number}", epoch=1, kind="run", at_ms=1, until_ms=2, reason=reason
        )
        reports.reporting.appended(number, note)
    assert reports.value("tutti_gang_planner_run_limit_overruns_total") == 2
    reports.reporting.observe({}, 0, 0, 3)
    assert reports.value("tutti_gang_planner_reservations_open") == 3


def test_gangs_are_counted_by_the_reason_that_was_said_last() -> None:
    reports = Reports()
    waiting = "tutti_gang_planner_gangs_waiting"

    def say(gang_id: str, reason: str, phase: GangPhase = "Inqueue") -> None:
        why = Why(reason=reason, sentence="s") if reason else None
        reports.reporting.published(
            Verdict(
                gang_id=gang_id,
                epoch=1,
                at_ms=1,
                dialect="volcano",
                namespace="team",
                name=gang_id,
                phase=phase,
                why=why,
            )
        )

    assert reports.value(waiting, reason="NotEnoughResources") == 0
    say("a", "NotEnoughResources")
    say("b", "NotEnoughResources")
    say("a", "NotEnoughResources")
    assert reports.value(waiting, reason="NotEnoughResources") == 2
    say("a", "SearchBudgetExceeded")
    say("b", "", "Running")
    assert reports.value(waiting, reason="NotEnoughResources") == 0
    assert reports.value(waiting, reason="SearchBudgetExceeded") == 1
    say("a", "SearchBudgetExceeded", "Gone")
    assert reports.value(waiting, reason="SearchBudgetExceeded") == 0


def test_the_age_of_what_was_read_at_the_start_is_no_lag_for_ever() -> None:
    reports = Reports()
    reports.now_ms += 7_200_000
    reports.settle(stored_ms=100_000)
    lag = "tutti_gang_planner_log_lag_seconds"
    assert reports.value(lag, stream="OUTCOMES") == 7_200.0
    assert reports.value(lag, stream="CLUSTER") == 0.0
    reports.now_ms += 60_000
    assert reports.value(lag, stream="OUTCOMES") == 0.0


def test_a_gang_that_is_gone_keeps_its_name_for_its_last_notes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="services.gang_planner")
    reports = Reports()
    reports.decide()
    reports.reporting.appended(2, GangStarted(gang_id="g", epoch=1, at_ms=1, attempt=1))
    gone = Verdict(
        gang_id="g", epoch=1, at_ms=1, dialect="volcano", namespace="team", name="g", phase="Gone"
    )
    reports.reporting.published(gone)
    reports.reporting.appended(3, GangStarted(gang_id="g", epoch=1, at_ms=1, attempt=1))
    names = [vars(record)["gang"] for record in caplog.records]
    assert names == ["team/g", "team/g", "team/g"]
