"""A signal that the shell of the tests ignores is none of their processes' business.

A shell that starts `make test` in the background has SIGINT ignored, and a program passes on what
it ignores: no process that a test starts could be interrupted.
"""

import signal


def keep_ignored_interrupt_from_children() -> None:
    """If SIGINT is ignored, ignore it by a handler: only this process inherits handlers."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
