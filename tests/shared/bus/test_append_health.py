"""Which streams confirm nothing."""

import asyncio

import pytest

from shared.bus.append_health import FORGET_S, PATIENCE_S, AppendHealth


class Clock:
    """The loop's time, moved by hand, with its timers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, asyncio.TimerHandle | None, object, tuple[object, ...]]] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now_s)
        monkeypatch.setattr(loop, "call_later", self._call_later)

    def _call_later(self, delay_s: float, call: object, *args: object) -> None:
        self.timers.append((self.now_s + delay_s, None, call, args))

    def fire(self) -> None:
        due = [timer for timer in self.timers if timer[0] <= self.now_s]
        self.timers = [timer for timer in self.timers if timer[0] > self.now_s]
        for _, _, call, args in due:
            assert callable(call)
            call(*args)


@pytest.fixture
def reported() -> dict[str, str]:
    return {}


@pytest.fixture
def health(reported: dict[str, str]) -> AppendHealth:
    return AppendHealth(reported.__setitem__)


async def test_a_stream_that_confirms_nothing_is_reported_after_a_while_and_named(
    health: AppendHealth, reported: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    for now_s in (0.0, 1.0, PATIENCE_S - 0.1):
        clock.now_s = now_s
        health.unanswered("decisions.act.x")
        assert not health.failed
        assert reported == {}
    clock.now_s = PATIENCE_S
    health.unanswered("decisions.act.x")
    assert "decisions" in health.failed
    assert "NATS stores nothing (decisions)" in reported["nats storage"]
    health.confirmed("cluster.pods")
    assert "decisions" in health.failed, "another stream stores"
    health.confirmed("decisions.act.y")
    assert not health.failed
    assert reported["nats storage"] == ""


async def test_a_new_connection_is_judged_by_itself(
    health: AppendHealth, reported: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    for now_s in (0.0, PATIENCE_S):
        clock.now_s = now_s
        health.unanswered("$KV.LEASES.planner")
    assert "LEASES" in reported["nats storage"]
    health.reconnected()
    assert reported["nats storage"] == ""


async def test_a_writer_that_appends_no_more_is_not_unwell_for_ever(
    health: AppendHealth, reported: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    for now_s in (0.0, PATIENCE_S):
        clock.now_s = now_s
        health.unanswered("decisions.act.x")
    clock.now_s = FORGET_S
    clock.fire()
    assert "decisions" in health.failed, "there was a later attempt"
    clock.now_s = PATIENCE_S + FORGET_S
    clock.fire()
    assert reported["nats storage"] == ""
