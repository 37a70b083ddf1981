"""The process that services are forked from: `python -m tutti.up.fork_server FD [MODULE...]`.

Every service needs the same libraries (aiohttp, nats, msgspec…), whose import takes 0.3 s of CPU:
two seconds for seven services. The fork server imports them once, with each further MODULE, and
forks. A service that it starts runs exactly as `python -m services.NAME` does, in a process of its
own; no module of a service is loaded here.

In: one JSON request per packet on the socket FD. Out: `Started` and `Ended` of each process. It
has no threads, no event loop and no open connections, so a fork is safe. It ends with its children
when the other end of the socket closes. It sends heartbeats as services do.
"""

import contextlib
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Final

import msgspec

from shared.runtime import heartbeat
from tutti.lifeline import dying_with_parent, set_name
from tutti.up.processes import open_log

#: Modules that every service imports.
_PRELOADED: Final = (
    *("shared.bus.fence", "shared.bus.publisher", "shared.bus.pull"),
    *("shared.kube.client", "shared.runtime.lifecycle"),
)
PACKET_BYTES_MAX: Final = 64 * 1024


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """Start `python -m module flags`. Its output goes to the file `log`; "": to our stderr."""

    request: int
    title: str
    module: str
    flags: tuple[str, ...]
    log: str
    #: Signal for the process when the fork server dies.
    orphan_signal: int


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The process runs; otherwise `error` has the reason."""

    request: int
    pid: int = 0
    error: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """A process has ended: its exit status, negative for a signal."""

    pid: int
    status: int


def serve(channel: socket.socket) -> Start | None:
    """Fork for every request. Returns in a child its request; in the fork server None, when the
    other end is closed.
    """
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    decode = msgspec.json.Decoder(Start).decode
    beats_every_s = heartbeat.interval_s(os.environ)
    while True:
        _beat()
        readable, _, _ = select.select([channel.fileno(), woken], [], [], beats_every_s)
        if woken in readable:
            os.read(woken, 4096)
            _report_ended(channel)
        if channel.fileno() not in readable:
            continue
        packet = channel.recv(PACKET_BYTES_MAX)
        if not packet:
            return None
        start = decode(packet)
        if _forked(start, channel):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (woken, wake):
                os.close(end)
            channel.close()
            return start


def _beat() -> None:
    address = heartbeat.supervisor_address(os.environ)
    if address is not None:
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel,
            contextlib.suppress(OSError),
        ):
            channel.sendto(heartbeat.BEAT, address)


def become(start: Start) -> None:
    """Turn this forked process into the service, and run it; leaves by SystemExit."""
    os.setsid()
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    log = open_log(Path(start.log) if start.log else None)
    if log is not None:
        os.dup2(log.fileno(), 2)
        log.close()
    os.dup2(2, 1)
    set_name(start.title)
    sys.argv = [start.module, *start.flags]
    runpy.run_module(start.module, run_name="__main__", alter_sys=True)


def _forked(start: Start, channel: socket.socket) -> bool:
    """Fork; True in the child."""
    tie = dying_with_parent(signal.Signals(start.orphan_signal))
    try:
        pid = os.fork()
    except OSError as error:
        channel.send(msgspec.json.encode(Started(request=start.request, error=str(error))))
        return False
    if pid == 0:
        if tie is not None:
            tie()
        return True
    channel.send(msgspec.json.encode(Started(request=start.request, pid=pid)))
    return False


def _report_ended(channel: socket.socket) -> None:
    while True:
        try:
            pid, wait_status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        status = os.waitstatus_to_exitcode(wait_status)
        channel.send(msgspec.json.encode(Ended(pid=pid, status=status)))


def import_aiohttp() -> None:
    """Import aiohttp without the certificate authorities of the system, of which it makes two
    copies for requests without a TLS context: 2 MiB in each process, and 20 to 50 ms. No process
    of `tutti up` sends such a request over TLS; it would be refused by its own check.
    """
    given = dict(os.environ)
    os.environ["SSL_CERT_FILE"] = os.devnull
    importlib.import_module("aiohttp")
    del os.environ["SSL_CERT_FILE"]
    os.environ.update(given)


def main() -> None:
    """Preload, fork, and in each child run the service."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    from shared.dialects.discovery import dialects  # Our client imports this module, too.

    set_name("fork-server")
    import_aiohttp()
    for module in (*_PRELOADED, *sys.argv[2:]):
        importlib.import_module(module)
    # 45 ms and 2 MiB in every service but the binder, or once for all.
    dialects()
    # Loaded modules stay until the end: the garbage collector must not touch (and so copy) the
    # pages that all children share.
    gc.collect()
    gc.freeze()
    if (start := serve(channel)) is not None:
        become(start)


if __name__ == "__main__":
    main()
