"""A clock that neither jumps nor runs backwards, whatever happens to the machine's."""

import pytest

from shared.runtime.steady_clock import SLEW, SteadyClock

_START_MS = 1_000_000.0


class Machine:
    """A machine whose two clocks a test sets."""

    def __init__(self) -> None:
        self.wall = _START_MS
        self.steady = 50.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.steady)

    def wait(self, seconds: float) -> int:
        """Let time pass, as a process that looks at the clock ten times a second."""
        now = self.clock.now_ms()
        for _ in range(int(seconds * 10)):
            self.wall += 100
            self.steady += 0.1
            now = self.clock.now_ms()
        return now


def test_a_right_clock_is_the_wall_clock() -> None:
    machine = Machine()
    assert machine.wait(60) == pytest.approx(machine.wall, abs=2)


@pytest.mark.parametrize("set_by_s", [-60, -6, 6, 60])
def test_a_clock_that_is_set_makes_no_duration_wrong_by_more_than_a_tenth(set_by_s: int) -> None:
    machine = Machine()
    before = machine.wait(1)
    machine.wall += set_by_s * 1000
    after = machine.wait(30)
    assert 30_000 * (1 - SLEW) - 2 <= after - before <= 30_000 * (1 + SLEW) + 2
    assert machine.wait(abs(set_by_s) / SLEW + 10) == pytest.approx(machine.wall, abs=2)


def test_it_never_runs_backwards_when_the_wall_clock_does() -> None:
    machine = Machine()
    seen = [machine.wait(1)]
    machine.wall -= 60_000
    seen += [machine.wait(0.1) for _ in range(100)]
    assert seen == sorted(seen)


@pytest.mark.parametrize("ahead_s", [-60, 60])
def test_a_log_is_continued_where_it_ends_whatever_the_own_clock_says(ahead_s: int) -> None:
    machine = Machine()
    log_ms = int(_START_MS) - ahead_s * 1000
    machine.clock.adopt(log_ms)
    assert machine.clock.now_ms() == log_ms
    passed_ms = machine.wait(10) - log_ms
    assert 9_000 - 2 <= passed_ms <= 11_000 + 2


def test_time_passes_in_a_log_while_no_process_writes_it() -> None:
    machine = Machine()
    machine.clock.adopt(int(_START_MS) - 600_000, 600_000)
    assert machine.clock.now_ms() == int(_START_MS)


def test_a_servers_clock_that_was_set_lets_no_deadline_pass() -> None:
    machine = Machine()
    # The server says that an hour has passed since the record; the own clock knows of a second.
    machine.clock.adopt(int(_START_MS) - 1_000, 3_600_000)
    assert machine.clock.now_ms() == int(_START_MS)
