"""The errors of the bus, one class per situation. No exception of the client library leaves this
package.
"""

import ssl

from shared.contracts.subjects import is_valid
from shared.model.invariants import InvariantViolation


class BusError(Exception):
    """The base of all errors below."""


class BusUnavailable(BusError):
    """The server cannot be reached or does not answer, after bounded attempts: try again later."""


class NoAnswer(BusError):
    """No service answered a request in time, or none listens; the requester continues without."""


class NoResponder(NoAnswer):
    """No process subscribes to the subject, as the server reported at once."""


class BusClosed(BusError):
    """This connection was closed finally, by us or by the server (bad credentials), and does not
    reconnect.
    """


class InvalidSubject(InvariantViolation):
    """A message has a subject that NATS does not accept: a bug in Tutti, which no retry cures."""


class MessageTooLarge(BusError):
    """The payload and its headers exceed the server's limit; nothing was sent."""


class AppendRefused(BusError):
    """The server answered that it does not store a message.

    Attributes:
        code: JetStream's `err_code`; 10071 is "wrong last sequence".
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} (err_code {code})")
        self.code = code
        self.text = text


class WrongLastSequence(AppendRefused):
    """Another writer appended before us: for an outcome, another binder was first; its outcome
    counts.
    """


class Superseded(BusError):
    """Another writer has appended to a fenced log: this process must stop deciding."""


class AppendUnresolved(BusError):
    """A misuse of `FencedLog`: an append with an unknown result must be repeated unchanged before
    any other append.
    """


class LogGap(BusError):
    """Records that a reader has not seen are no longer in the stream: take a snapshot and continue
    from it.

    Attributes:
        wanted: Sequence of the first record missed.
        available: Sequence of the first record in the stream.
    """

    def __init__(self, stream: str, wanted: int, available: int) -> None:
        super().__init__(f"{stream}: record {wanted} is gone, the first there is is {available}")
        self.wanted = wanted
        self.available = available


class StreamReplaced(BusError):
    """The stream was created again, or has lost its end: its known sequences are meaningless, and
    the reader must start without state.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} is not the stream it was: it was created again or lost its end")


class ApiRefused(BusError):
    """JetStream's API answered with an error.

    Attributes:
        code: HTTP-like status, 404 for what does not exist.
        err_code: JetStream's own number.
    """

    def __init__(self, api: str, code: int, err_code: int, text: str) -> None:
        super().__init__(f"{api}: {text} (code {code}, err_code {err_code})")
        self.code = code
        self.err_code = err_code


def check_subject(subject: str) -> None:
    """Check the subject of a message before it is sent.

    Raises:
        InvalidSubject: NATS would refuse it, or understand another one.
    """
    if not is_valid(subject):
        raise InvalidSubject(f"subject {subject!r}", "is visible ASCII without wildcards")


def describe(error: Exception) -> str:
    """The text of the client library's exception, explained where a user can cause it."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.reason or error}"
    return str(error) or type(error).__name__
