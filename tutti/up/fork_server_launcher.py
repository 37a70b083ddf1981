"""The client of the fork server: starts it, requests processes, receives their ends.

The fork server starts before everything else, and imports modules while the kubeconfig is read and
the cluster is checked. If it dies, its children die too, and the next launch starts another one. If
it hangs it is killed, as a service is.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec

from tutti.lifeline import dying_with_parent
from tutti.up.fork_server import PACKET_BYTES_MAX, Ended, Start, Started
from tutti.up.processes import ISOLATED, Child, ProcessSpec, child_environ
from tutti.up.watchdog import Heartbeats, Say, kill_when_hung

#: Modules of services that export traces: 0.1 s of CPU in each, or once before they are forked.
TRACING: Final = ("shared.telemetry.otlp_export",)
#: Imports take half a second, several on a loaded machine.
_ANSWER_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 5.0
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Started | Ended).decode


class ForkServer:
    """One fork server process, which also imports `modules`, with `environ` added to its
    environment. Make it in the thread of the event loop; it does not block. Raises OSError.
    """

    def __init__(
        self, modules: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fd = theirs.fileno()
            module = "tutti.up.fork_server"
            self.process = subprocess.Popen(
                [sys.executable, *ISOLATED, "-m", module, str(fd), *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[fd],
                env=child_environ(environ),
                preexec_fn=dying_with_parent(signal.SIGKILL),  # noqa: PLW1509 - a system call only
                start_new_session=True,
            )
        self.channel.setblocking(False)

    def close(self) -> None:
        """End it and its children; blocks for a moment. Idempotent."""
        self.channel.close()
        try:
            self.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ForkServerLauncher:
    """Starts processes by a fork server; an async context manager, which ends the fork server.

    Every fork server that it starts, the first one at once, imports `modules` too.
    """

    def __init__(
        self,
        modules: Sequence[str] = (),
        heartbeats: Heartbeats | None = None,
        say: Say = lambda _: None,
    ) -> None:
        """`heartbeats` receives those of the fork server and its children; `say` receives a line
        when the fork server hangs.
        """
        self._modules = modules
        self._heartbeats = heartbeats
        self._say = say
        self._watching: asyncio.Task[None] | None = None
        self._fork_server: ForkServer | None = self._start()
        self._listening = False
        self._requests = 0
        self._starting: dict[int, asyncio.Future[int]] = {}
        self._running: dict[int, _ForkedChild] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        fork_server = self._lose("the fork server was closed")
        if fork_server is not None:
            await asyncio.to_thread(fork_server.close)

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start one process; after a failure or a cancellation none is left. Raises OSError."""
        fork_server = self._listen()
        self._requests += 1
        request = self._requests
        answered = asyncio.get_running_loop().create_future()
        self._starting[request] = answered
        start = Start(
            request=request,
            title=spec.title,
            module=spec.module,
            flags=spec.flags,
            log="" if spec.log is None else str(spec.log),
            orphan_signal=spec.orphan_signal,
        )
        try:
            fork_server.channel.send(_encode(start))
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                pid = await answered
        except TimeoutError:
            raise OSError(f"{spec.title}: no process after {_ANSWER_TIMEOUT_S:.0f} s") from None
        finally:
            # The process of a later answer is killed.
            self._starting.pop(request, None)
        return self._running[pid]

    def _start(self) -> ForkServer:
        environ = None if self._heartbeats is None else self._heartbeats.environ
        return ForkServer(self._modules, environ)

    def _watch(self, fork_server: ForkServer) -> None:
        heartbeats, process = self._heartbeats, fork_server.process
        if heartbeats is not None and heartbeats.supported:
            self._watching = asyncio.create_task(
                kill_when_hung(
                    process, "fork-server", lambda: heartbeats.last_s(process.pid), self._say
                ),
                name="watch-fork-server",
            )

    def _listen(self) -> ForkServer:
        """The fork server; started if there is none, with a reader for its messages."""
        if self._fork_server is None:
            self._fork_server = self._start()
        if not self._listening:
            loop = asyncio.get_running_loop()
            loop.add_reader(
                self._fork_server.channel.fileno(), self._on_readable, self._fork_server
            )
            self._watch(self._fork_server)
            self._listening = True
        return self._fork_server

    def _on_readable(self, fork_server: ForkServer) -> None:
        while True:
            try:
                packet = fork_server.channel.recv(PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            except ConnectionResetError:
                packet = b""
            if not packet:
                lost = self._lose("the fork server died")
                if lost is not None:
                    # It is dead: this reaps it without waiting.
                    lost.close()
                return
            message = _decode(packet)
            if isinstance(message, Ended):
                child = self._running.pop(message.pid, None)
                if child is not None:
                    child.ended.set_result(message.status)
            else:
                self._on_started(message)

    def _on_started(self, message: Started) -> None:
        answered = self._starting.get(message.request)
        if message.pid:
            self._running[message.pid] = _ForkedChild(message.pid)
        if answered is None or answered.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(message.pid, signal.SIGKILL)
        elif message.error:
            answered.set_exception(OSError(f"cannot fork: {message.error}"))
        else:
            answered.set_result(message.pid)

    def _lose(self, why: str) -> ForkServer | None:
        """Discard the fork server; its children are dead, or about to die."""
        fork_server, self._fork_server = self._fork_server, None
        if fork_server is None:
            return None
        if self._listening:
            asyncio.get_running_loop().remove_reader(fork_server.channel.fileno())
            self._listening = False
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        for answered in self._starting.values():
            if not answered.done():
                answered.set_exception(OSError(why))
        for child in self._running.values():
            child.ended.set_result(-signal.SIGKILL)
        self._running.clear()
        return fork_server


class _ForkedChild:
    """A process that the fork server forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        #: Its exit status, once it has one.
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        # Shielded: several tasks wait for it, and one of them may be cancelled.
        return await asyncio.shield(self.ended)

    def send_signal(self, number: signal.Signals) -> None:
        if not self.ended.done():
            # The fork server may have reaped it already, and its report is not read yet.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
