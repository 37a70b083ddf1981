"""How one generation of a service ends, and whether the same process begins the next one.

A generation lasts from the connection to NATS to its closing. A process whose generation was
superseded, or lacked something external (NATS, streams, a right), begins the next generation
itself: a supervisor such as the kubelet takes an exit for a crash, and delays restarts.
"""

import asyncio
import enum
import logging

from shared.bus.errors import (
    ApiRefused,
    BusClosed,
    BusUnavailable,
    NoAnswer,
    StreamReplaced,
    Superseded,
)
from shared.runtime.settings import SettingsError

_log = logging.getLogger(__name__)


class Ending(enum.IntEnum):
    """How a generation ended; the value is the exit status, if the process ends with it."""

    STOPPED = 0
    CRASHED = 1
    #: A setting, or a file that it names, is invalid: the next generation would fail as this one.
    MISCONFIGURED = 2
    #: Another writer took over, or a log was replaced: the state of this generation is void.
    SUPERSEDED = 3
    #: NATS, a stream, a consumer or a right is missing.
    LACKING = 4

    @property
    def continues(self) -> bool:
        """Whether the process begins another generation."""
        return self in {Ending.SUPERSEDED, Ending.LACKING}


class StateVoid(Exception):
    """The state of this process is no longer valid, and only a new generation can rebuild it."""


_SUPERSEDED = Superseded | StreamReplaced | StateVoid
_LACKING = BusUnavailable | NoAnswer | BusClosed | ApiRefused


def ending_of(crash: BaseExceptionGroup[BaseException]) -> tuple[Ending, str]:
    """Classify the exceptions that ended a generation, and log them; returns the ending, and its
    reason as text.

    One exception of any other type makes it a crash. Cancellations do not count.
    """
    errors = [error for error in _leaves(crash) if not isinstance(error, asyncio.CancelledError)]
    settings = [error for error in errors if isinstance(error, SettingsError)]
    if settings:
        _log.critical("a setting is invalid: %s", settings[0])
        return Ending.MISCONFIGURED, str(settings[0])
    superseded = [error for error in errors if isinstance(error, _SUPERSEDED)]
    lacking = [error for error in errors if isinstance(error, _LACKING)]
    if len(superseded) + len(lacking) < len(errors) or not errors:
        _log.critical("crashed", exc_info=crash)
        return Ending.CRASHED, f"crashed: {errors[0] if errors else crash}"
    if superseded:
        _log.warning("superseded: %s", superseded[0])
        return Ending.SUPERSEDED, f"superseded: {superseded[0]}"
    _log.warning("waiting: %s", lacking[0])
    return Ending.LACKING, f"waiting: {lacking[0]}"


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]
