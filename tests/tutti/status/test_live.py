"""The screen of `tutti status --watch`."""

import io
from datetime import UTC, datetime

import msgspec
from rich.console import Console

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue
from shared.visible_objects import build_queues
from tests.support.golden import Golden
from tutti.status.command import StatusScreen
from tutti.status.report import Report, ServiceLine, StreamLine

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def line(instance: str, **more: object) -> ServiceLine:
    plain = ServiceLine(
        service=instance.rpartition("-")[0],
        instance=instance,
        pid=1,
        version="1",
        http_port=1,
        started_ms=int(NOW.timestamp() * 1000) - 7_200_000,
        ready=True,
        active=True,
    )
    return msgspec.structs.replace(plain, **more)


def found(*services: ServiceLine, decisions_per_s: float = 0.0, last_seq: int = 10) -> Report:
    return Report(
        ready=all(one.ready for one in services),
        problems=tuple(f"{one.instance}: away" for one in services if not one.ready),
        services=services,
        gangs={"Inqueue": 1, "Running": 4},
        holds=2,
        decisions_per_s=decisions_per_s,
        pods_bound_per_s=0.0,
        webhook_registered=False,
        streams=(StreamLine(stream="CLUSTER", messages=2_500, first_seq=1, last_seq=last_seq),),
    )


def screen(watched: StatusScreen) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=100, color_system=None).print(watched.draw(NOW))
    return text.getvalue().splitlines()


def lines_with(word: str, lines: list[str]) -> list[str]:
    return [" ".join(one.strip("│ ").split()) for one in lines if word in one]


def test_services_gangs_queues_and_streams_are_on_one_screen(golden: Golden) -> None:
    watched = StatusScreen()
    ledger = LedgerAnswer(
        queues=(
            LedgerQueue(
                name="research",
                exists=True,
                running=3,
                waiting=1,
                amounts=(LedgerAmount(resource="cpu", used=6_000, deserved=12_000),),
            ),
            LedgerQueue(name="idle", exists=True),
        )
    )
    queues = build_queues(ledger, None)
    lost = line("binder-0", ready=False, not_ready=("kubernetes: away",))
    watched.take(found(line("watcher-0"), lost, line("gang-planner-1", active=False)), queues, 1.0)
    watched.take(found(line("watcher-0"), lost, decisions_per_s=8.0, last_seq=40), queues, 2.0)
    lines = screen(watched)
    assert "tutti is not ready" in lines[0]
    assert "binder-0: away" in lines[0]
    assert "12:00:00 UTC" in lines[0]
    assert lines_with("watcher-0", lines) == ["● watcher-0 active 2h"]
    golden(*lines_with("kubernetes: away", lines))
    assert lines_with("Running", lines) == ["Running 4 " + "█" * 30]
    assert lines_with("reserved", lines) == ["reserved 2"]
    assert lines_with("decisions/s", lines) == ["decisions/s 8 ▁█"]
    assert lines_with("research", lines) == [
        "research 3 run 1 wait " + "█" * 15 + "░" * 15 + " 6 of 12 cpu"
    ]
    assert not lines_with("idle", lines)
    assert lines_with("CLUSTER", lines) == ["CLUSTER 2.5k +15/s"]


def test_without_a_standby_there_are_no_queues_and_nothing_else_is_missing() -> None:
    watched = StatusScreen()
    assert "asking" in screen(watched)[0]
    watched.take(found(line("watcher-0")), None, 1.0)
    lines = screen(watched)
    assert "tutti is ready" in lines[0]
    assert not lines_with("queues", lines)
    assert lines_with("CLUSTER", lines) == ["CLUSTER 2.5k +0/s"]
