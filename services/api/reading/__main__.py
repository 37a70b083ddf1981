"""Replies to questions on standard input until it is closed. Arguments: a question's budget of
processor time in seconds, and the bytes of address space.

A question that takes more processor time than it may ends the process: nothing else cuts a decoder
or a reader of a dialect short, wherever it is. Its service starts another one.
"""

import os
import resource
import signal
import sys
import traceback
from typing import BinaryIO

from services.api.core.manifest_questions import (
    LENGTH_BYTES,
    REPLY_BYTES_MAX,
    ManifestReply,
    decode_question,
    encode_reply,
    reply_to,
)


def main(cpu_s: float, memory_bytes: int) -> None:
    """Reply until standard input ends."""
    # An interrupt of the terminal reaches all its processes. This one ends with its service.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # It may be killed with the manifests of a user in its memory.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replies = os.fdopen(os.dup(1), "wb")
    # Nothing that is printed may become part of a reply.
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    while length := questions.read(LENGTH_BYTES):
        _send(replies, _replied(questions.read(int.from_bytes(length)), cpu_s))


def _replied(question: bytes, cpu_s: float) -> bytes:
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        encoded = encode_reply(reply_to(decode_question(question)))
    except (MemoryError, SystemError):
        # Where memory for a call is missing, CPython may report an error without an exception.
        encoded = encode_reply(
            ManifestReply(refused=422, message="spec.manifests: they need too much memory")
        )
    except Exception:  # noqa: BLE001 - a bug; the service logs it
        encoded = encode_reply(ManifestReply(refused=500, message=traceback.format_exc()))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if len(encoded) > REPLY_BYTES_MAX:
        message = f"spec.manifests: the answer has more than {REPLY_BYTES_MAX} bytes"
        return encode_reply(ManifestReply(refused=422, message=message))
    return encoded


def _send(replies: BinaryIO, reply: bytes) -> None:
    replies.write(len(reply).to_bytes(LENGTH_BYTES))
    replies.write(reply)
    replies.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
