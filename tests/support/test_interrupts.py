"""What processes that tests start do on SIGINT, however the tests were started."""

import signal
import subprocess
import sys

_CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
_TESTS = f"""
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from tests.support.interrupts import keep_ignored_interrupt_from_children
keep_ignored_interrupt_from_children()
os.kill(os.getpid(), signal.SIGINT)
subprocess.run([sys.executable, "-c", {_CHILD!r}], check=True)
"""


def test_the_children_of_tests_in_the_background_can_be_interrupted_and_the_tests_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TESTS], check=True, capture_output=True, text=True
    )
    assert done.stdout == "True\n"


def test_these_tests_pass_on_no_ignored_interrupt() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
