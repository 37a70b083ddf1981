import msgspec
import pytest

from shared.contracts.questions import ServiceStatus
from tutti.status.report import Report, report


def answer(service: str, ordinal: int = 0, **more: object) -> ServiceStatus:
    fields = {
        "service": service,
        "instance": f"{service}-{ordinal}",
        "pid": 10 + ordinal,
        "version": "1",
        "http_port": 1,
        "ready": True,
        **more,
    }
    return msgspec.convert(fields, ServiceStatus)


SUITE = (
    answer("watcher"),
    answer("gang-planner"),
    answer("gang-planner", 1, active=False),
    answer("binder"),
)


def made(*second: ServiceStatus, first: tuple[ServiceStatus, ...] = ()) -> Report:
    return report(first or second, second, 2.0, ())


def test_a_whole_suite_is_ready() -> None:
    found = made(*SUITE)
    assert found.ready
    assert [line.instance for line in found.services] == [
        "binder-0",
        "gang-planner-0",
        "gang-planner-1",
        "watcher-0",
    ]
    assert found.webhook_registered is None


@pytest.mark.parametrize(
    ("suite", "problem"),
    [
        pytest.param(SUITE[1:], "no watcher answers", id="a service is missing"),
        pytest.param((*SUITE[:1], *SUITE[2:]), "no gang-planner is active", id="only a standby"),
        pytest.param(
            (*SUITE, answer("controller", ready=False, not_ready=["kubernetes: away"])),
            "controller-0: kubernetes: away",
            id="something is not ready",
        ),
        pytest.param((*SUITE, answer("binder", 1, ready=False)), "binder-1: not ready", id="mute"),
    ],
)
def test_what_is_wrong_is_named(suite: tuple[ServiceStatus, ...], problem: str) -> None:
    found = made(*suite)
    assert not found.ready
    assert found.problems == (problem,)


def test_gangs_are_those_of_the_planner_that_writes() -> None:
    counts = {'gangs{phase="Running"}': 3.0, 'gangs{phase="Pending"}': 0.0, "cycles_total": 9.0}
    stale = {'gangs{phase="Running"}': 99.0}
    found = made(
        answer("gang-planner", figures=counts),
        answer("gang-planner", 1, active=False, figures=stale),
    )
    assert found.gangs == {"Running": 3}


def test_repairs_releases_and_holds_are_those_of_the_planner_that_writes() -> None:
    counts = {
        'gangs{phase="Releasing"}': 1.0,
        'gangs{phase="Repairing"}': 2.0,
        "holds_open": 3.0,
    }
    found = made(
        answer("gang-planner", figures=counts),
        answer("gang-planner", 1, active=False, figures={"holds_open": 9.0}),
    )
    assert found.gangs == {"Releasing": 1, "Repairing": 2}
    assert found.holds == 3


def test_rates_are_what_processes_that_answered_twice_have_gained() -> None:
    before = (
        answer("gang-planner", figures={"decisions_total": 10.0}),
        answer("binder", figures={"pods_bound_total": 100.0}),
        answer("binder", 1, pid=77, figures={"pods_bound_total": 50.0}),
    )
    after = (
        answer("gang-planner", figures={"decisions_total": 16.0}),
        answer("binder", figures={"pods_bound_total": 120.0}),
        # Started again: its counter says nothing about the last two seconds.
        answer("binder", 1, pid=78, figures={"pods_bound_total": 4_000.0}),
    )
    found = made(*after, first=before)
    assert found.decisions_per_s == 3.0
    assert found.pods_bound_per_s == 10.0


def test_a_counter_with_labels_is_added_up() -> None:
    before = (answer("gang-planner", figures={'decisions_total{reason=""}': 1.0}),)
    after = (
        answer(
            "gang-planner",
            figures={'decisions_total{reason=""}': 3.0, 'decisions_total{reason="x"}': 2.0},
        ),
    )
    assert made(*after, first=before).decisions_per_s == 2.0


@pytest.mark.parametrize(("figure", "registered"), [(1.0, True), (0.0, False)])
def test_a_webhook_says_whether_it_is_registered(figure: float, registered: bool) -> None:
    found = made(*SUITE, answer("admission-webhook", figures={"webhook_registered": figure}))
    assert found.webhook_registered is registered
