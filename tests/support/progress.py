"""Reports on the terminal what a run of the tests is building while it builds.

Pytest captures what tests and their fixtures write, also in the worker processes of xdist. So
`pytest_configure` keeps a copy of standard error from before the capture, and reports are written
there. Outside pytest they go to standard error.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: How often a step that is still running is reported.
INTERVAL_S: Final = 15.0
_STANDARD_ERROR: Final = 2


class _Terminal:
    """Where reports go."""

    descriptor = _STANDARD_ERROR

    @classmethod
    def write_line(cls, line: str) -> None:
        # One write for each line: the lines of several processes do not mix.
        os.write(cls.descriptor, f"{line}\n".encode())


def pytest_configure() -> None:
    """Keep standard error as it is before pytest captures it."""
    if _Terminal.descriptor == _STANDARD_ERROR:
        _Terminal.descriptor = os.dup(_STANDARD_ERROR)


@contextmanager
def reported(
    step: str,
    about: str,
    *,
    interval_s: float = INTERVAL_S,
    write_line: Callable[[str], None] = _Terminal.write_line,
) -> Iterator[None]:
    """Report the start of a step, its elapsed time every `interval_s` seconds, and its end.

    Args:
        step: What is done, such as "building Helm v3.22.0".
        about: Roughly how long it takes, such as "about 3 minutes on two cores".
    """
    started_s = time.monotonic()

    def elapsed() -> str:
        return f"{time.monotonic() - started_s:.0f} s"

    ended = threading.Event()

    def report_until_ended() -> None:
        while not ended.wait(interval_s):
            write_line(f"tests: {step}: {elapsed()} so far ({about})")

    write_line(f"tests: {step} ({about})")
    reporter = threading.Thread(target=report_until_ended, name=f"progress of {step}", daemon=True)
    reporter.start()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        ended.set()
        reporter.join()
        write_line(f"tests: {step}: {outcome} after {elapsed()}")
