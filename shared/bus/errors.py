"""What can go wrong on the bus, named by situation. No exception of the client library leaves this
package.
"""

import ssl


class BusError(Exception):
    """Everything below, for callers that handle them alike."""


class BusUnavailable(BusError):
    """The server cannot be reached or does not answer, after bounded attempts: try again later."""


class NoAnswer(BusError):
    """No service answered a question in time, or none listens: the asker continues without."""


class NoResponder(NoAnswer):
    """No process subscribes to the subject: the server said so at once."""


class BusClosed(BusError):
    """This connection was closed, by us or for good by the server (bad credentials): it never comes
    back.
    """


class MessageTooLarge(BusError):
    """The payload and its headers exceed what the server takes; nothing was sent."""


class AppendRefused(BusError):
    """The server refused to store a message, and said so: it is not stored.

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
    """Another writer has appended to a fenced log: this process must not decide any more. Step
    down.
    """


class AppendUnresolved(BusError):
    """A misuse of `FencedLog`: an append of unknown fate must be repeated as it was before anything
    else.
    """


class LogGap(BusError):
    """Records that a reader has not seen are no longer in the stream: take a snapshot and continue
    from it.

    Attributes:
        wanted: Sequence of the first record missed.
        available: Sequence of the first record that there is.
    """

    def __init__(self, stream: str, wanted: int, available: int) -> None:
        super().__init__(f"{stream}: record {wanted} is gone, the first there is is {available}")
        self.stream = stream
        self.wanted = wanted
        self.available = available


class StreamReplaced(BusError):
    """The stream was made again, or has lost its end: sequences known from it mean nothing. Start
    cold.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} is not the stream it was: it was created again or lost its end")
        self.stream = stream


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
        self.text = text


def describe(error: Exception) -> str:
    """What the client library's exception says, in words where users cause it."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.reason or error}"
    return str(error) or type(error).__name__
