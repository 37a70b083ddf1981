"""Reads users' manifests in other processes.

One megabyte of manifests takes seconds of Python, which holds the interpreter's lock: on the event
loop it would delay the answers to all users by these seconds, and in a thread by tens of
milliseconds each (measured: p50 6 ms and p99 41 ms a request, and 0.2 and 6 ms with a process). A
process has a budget of processor
time and memory, and ends when a question exceeds it. Users are served in turn (`UserTurns`).
"""

import asyncio
import contextlib
import logging
import sys
from typing import Final

from services.api.core.manifest_questions import (
    LENGTH_BYTES,
    ManifestQuestion,
    ManifestReply,
    decode_reply,
    encode_question,
)
from services.api.errors import RequestFailed
from shared.runtime.user_turns import UserTurns

log = logging.getLogger(__name__)

#: A question's budget of processor time. The longest that a body of one megabyte was seen to take
#: is 2.7 s.
CPU_S: Final = 8.0
#: Address space of a reader. The longest bodies were seen to take 60 MiB; two of
#: these fit into the chart's limit for the service.
_MEMORY_BYTES: Final = 256 * 1024 * 1024
#: Two, so that a user with a long question does not delay another one.
_READERS: Final = 2
_READERS_OF_USER: Final = 1
#: Also on a machine that has no time for the process: the API server gives up after a minute.
_WAIT_S: Final = 30.0


class _Reader:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, question: bytes) -> ManifestReply:
        """Its reply. Raises OSError, EOFError: the process has ended."""
        sender, receiver = self._process.stdin, self._process.stdout
        assert sender is not None  # noqa: S101 - both are pipes
        assert receiver is not None  # noqa: S101 - likewise
        sender.write(len(question).to_bytes(LENGTH_BYTES))
        sender.write(question)
        await sender.drain()
        length = int.from_bytes(await receiver.readexactly(LENGTH_BYTES))
        return decode_reply(await receiver.readexactly(length))

    async def end(self) -> None:
        """End the process, whatever it does. Safe to call twice."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()


class ManifestReaders:
    """The processes; they start with the first questions."""

    def __init__(self, *, cpu_s: float = CPU_S, memory_bytes: int = _MEMORY_BYTES) -> None:
        """`cpu_s` is a question's budget of processor time, and `memory_bytes` the address space of
        a process.
        """
        self._cpu_s = cpu_s
        self._memory_bytes = memory_bytes
        self._turns = UserTurns(places=_READERS, of_user=_READERS_OF_USER)
        self._readers: set[_Reader] = set()
        self._idle: list[_Reader] = []
        self._stopped = False

    async def read(self, user: str, question: ManifestQuestion) -> ManifestReply:
        """The reply to a question of the user of this name.

        Raises:
            RequestFailed: As the reply refuses; 422, the budget does not suffice; 503, it was not
                read in time.
        """
        reply = await self._turns.run(user, lambda: self._read(user, question))
        if reply.refused is None:
            return reply
        if reply.refused >= 500:
            log.error("a question failed: %s", reply.message)
            raise RequestFailed(500, "an internal error occurred")
        raise RequestFailed(reply.refused, reply.message, causes=reply.causes)

    async def stop(self) -> None:
        """End the processes. Safe to call twice."""
        self._stopped = True
        for reader in self._readers:
            await reader.end()

    async def _read(self, user: str, question: ManifestQuestion) -> ManifestReply:
        reader = self._idle.pop() if self._idle else await self._start()
        whole = False
        try:
            async with asyncio.timeout(_WAIT_S):
                reply = await reader.ask(encode_question(question))
            whole = True
        except TimeoutError:
            raise RequestFailed(
                503, "the manifests could not be read in time", retry_after_s=5
            ) from None
        except (OSError, EOFError):
            if self._stopped:
                raise RequestFailed(503, "the service stops", retry_after_s=1) from None
            log.warning("a question of the user %.100r exceeded its budget", user)
            rule = f"they need more than {self._cpu_s:g} s of processor time, or too much memory"
            raise RequestFailed(422, f"spec.manifests: {rule}") from None
        finally:
            if whole:
                self._idle.append(reader)
            else:
                # The next user shall not wait for the start of another process.
                await self._replace(reader)
        return reply

    async def _replace(self, reader: _Reader) -> None:
        await reader.end()
        if not self._stopped:
            self._readers.discard(reader)
            self._idle.append(await self._start())

    async def _start(self) -> _Reader:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            # The folder in which the service was started may have modules of these names.
            "-P",
            "-m",
            "services.api.reading",
            str(self._cpu_s),
            str(self._memory_bytes),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        reader = _Reader(process)
        if self._stopped:
            await reader.end()
            raise RequestFailed(503, "the service stops", retry_after_s=1)
        self._readers.add(reader)
        return reader
