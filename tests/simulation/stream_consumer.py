"""A simulated durable pull consumer of JetStream: deliveries and redeliveries.

As nats-server 2.15 does it. A log's consumer (acknowledgement: none) forgets what it has sent; a
worker's remembers until it is acknowledged, and delivers it again after the ack wait, to the next
pull.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from shared.bus.jetstream_api import NANOSECONDS
from tests.simulation.subject_matching import matches

if TYPE_CHECKING:
    from tests.simulation.stream_store import Config, SimStream, Stored

#: How long a server that is killed may take to forget an acknowledgement: its consumers' state is
#: written a little later.
ACK_FORGOTTEN_NS: Final = NANOSECONDS // 10
_ACK_WAIT_NS: Final = 30 * NANOSECONDS
_WAITING_MAX: Final = 512


class Cancellable(Protocol):
    """Something scheduled."""

    def cancel(self) -> object:
        """It shall not be done."""
        ...


class Host(Protocol):
    """What a consumer needs of its server."""

    def now_ns(self) -> int:
        """The server's wall clock."""
        ...

    def after(self, delay_s: float, action: Any, *args: object) -> Cancellable:
        """Do something later."""
        ...

    def interested(self, subject: str) -> bool:
        """Whether there is a subscriber."""
        ...

    def deliver(
        self, to: str, subject: str, reply: str, payload: bytes, headers: Mapping[str, str]
    ) -> None:
        """Send a message to the subscribers of `to`."""
        ...


class PullBody(msgspec.Struct, frozen=True):
    """Request of CONSUMER.MSG.NEXT."""

    batch: int = 1
    expires: int = 0
    no_wait: bool = False
    max_bytes: int = 0
    idle_heartbeat: int = 0


class _Pull:
    """One request for messages that is not answered in full yet."""

    def __init__(self, reply: str, body: PullBody, now_ns: int) -> None:
        self.reply = reply
        self.left = max(1, body.batch)
        self.bytes_left = body.max_bytes
        self.limited = body.max_bytes > 0
        self.no_wait = body.no_wait
        self.heartbeat_ns = body.idle_heartbeat
        self.spoke_ns = now_ns
        self.timers: list[Cancellable] = []


class _Pending:
    """A message that was delivered and is not acknowledged."""

    __slots__ = ("deadline_ns",)

    def __init__(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns


class SimConsumer:
    """See the module's docstring."""

    def __init__(self, stream: "SimStream", config: "Config", host: Host) -> None:
        self.name: str = config["durable_name"]
        self._stream = stream
        self._host = host
        self._waiting: deque[_Pull] = deque()
        self._pending: dict[int, _Pending] = {}
        #: How often each record that is pending was delivered.
        self._delivered: dict[int, int] = {}
        self._again: deque[int] = deque()
        self._number = 0
        self._last_sent_seq = 0
        self._next = max(1, stream.first_seq)
        #: Of a consumer that starts with the newest of each subject: those still to be given.
        self._initial: deque[int] = deque()
        self._timer: Cancellable | None = None
        self._timer_ns = 0
        #: Acknowledged lately: (when, sequence, how often delivered).
        self._acked: deque[tuple[int, int, int]] = deque()
        self.configure(config)
        if config.get("deliver_policy") == "last_per_subject":
            self._initial.extend(stream.newest_of_each(self._wants))
            self._next = stream.last_seq + 1

    def configure(self, config: "Config") -> None:
        """Take a configuration, the first or a newer one."""
        self.config = config
        one = config.get("filter_subject")
        self._filters: tuple[str, ...] = (one,) if one else tuple(config.get("filter_subjects", ()))
        self._everything = not self._filters or self._filters == self._stream.subjects
        self._explicit = config.get("ack_policy") == "explicit"
        self._ack_wait_ns: int = config.get("ack_wait", _ACK_WAIT_NS)
        self._pending_max: int = config.get("max_ack_pending", 1000)

    def describe(self) -> dict[str, Any]:
        """What CONSUMER.INFO says."""
        return {
            "stream_name": self._stream.name,
            "name": self.name,
            "config": self.config,
            "delivered": {"consumer_seq": self._number, "stream_seq": self._last_sent_seq},
            "num_ack_pending": len(self._pending),
            "num_redelivered": sum(count > 1 for count in self._delivered.values()),
            "num_waiting": len(self._waiting),
            "num_pending": self._left_over(),
        }

    # ---- what clients ask

    def pull(self, reply: str, body: PullBody) -> None:
        """A client asks for messages."""
        pull = _Pull(reply, body, self._host.now_ns())
        if len(self._waiting) >= _WAITING_MAX:
            self._answer(pull, {"Status": "409", "Description": "Exceeded MaxWaiting"})
            return
        self._waiting.append(pull)
        self.pump()
        if pull not in self._waiting:
            return
        if pull.no_wait and not body.expires:
            self._end(pull, {"Status": "404", "Description": "No Messages"})
            return
        if body.expires:
            pull.timers.append(self._host.after(body.expires / NANOSECONDS, self._expire, pull))
        if pull.heartbeat_ns:
            self._arm_heartbeat(pull, pull.heartbeat_ns)

    def reset(self, seq: int) -> None:
        """Deliver from that record on, numbered from 1; what waits for it continues waiting."""
        self._next = max(1, seq)
        self._number = 0
        self._last_sent_seq = self._next - 1
        self._pending.clear()
        self._delivered.clear()
        self._again.clear()
        self._initial.clear()
        self.pump()

    def acknowledge(self, seq: int, payload: bytes) -> None:
        """A client says what became of a delivery."""
        pending = self._pending.get(seq)
        if pending is None:
            return
        now_ns = self._host.now_ns()
        if payload in {b"", b"+ACK"} or payload.startswith(b"+TERM"):
            del self._pending[seq]
            self._acked.append((now_ns, seq, self._delivered.pop(seq, 1)))
            while self._acked[0][0] + ACK_FORGOTTEN_NS < now_ns:
                self._acked.popleft()
            self.pump()
        elif payload.startswith(b"+WPI"):
            pending.deadline_ns = now_ns + self._ack_wait_ns
        elif payload.startswith(b"-NAK"):
            self._refused(seq, pending, payload, now_ns)

    def _refused(self, seq: int, pending: _Pending, payload: bytes, now_ns: int) -> None:
        body = payload.removeprefix(b"-NAK").strip()
        delay_ns = msgspec.json.decode(body)["delay"] if body else 0
        if delay_ns:
            pending.deadline_ns = now_ns + delay_ns
            self._arm(pending.deadline_ns)
        else:
            self._give_again(seq)
            self.pump()

    # ---- what happens to it

    def pump(self) -> None:
        """Deliver what there is to the waiting pulls, in turn."""
        if not self._waiting:
            return
        left_over = -1
        while self._waiting:
            found = self._take_next()
            if found is None:
                return
            record, again = found
            pull = self._taker(record)
            if pull is None:
                self._put_back(record, again=again)
                return
            if left_over < 0:
                left_over = self._left_over()
            elif not again:
                left_over -= 1
            self._send(pull, record, left_over)

    def redeliver_early(self, index: int) -> bool:
        """A fault: give something again before its time. False: nothing is pending."""
        waiting = [seq for seq in self._pending if seq not in self._again]
        if not waiting:
            return False
        self._give_again(waiting[index % len(waiting)])
        self.pump()
        return True

    def server_died(self, forgotten: int) -> None:
        """Requests are lost with it, and up to so many of the newest acknowledgements."""
        for pull in self._waiting:
            _cancel(pull)
        self._waiting.clear()
        deadline_ns = self._host.now_ns() + self._ack_wait_ns
        for _ in range(forgotten):
            if not self._acked:
                break
            _, seq, delivered = self._acked.pop()
            if seq in self._stream.records:
                self._pending[seq] = _Pending(deadline_ns)
                self._delivered[seq] = delivered
        if self._pending:
            self._arm(deadline_ns)

    # ---- choosing

    def _wants(self, subject: str) -> bool:
        return self._everything or any(matches(each, subject) for each in self._filters)

    def _take_next(self) -> "tuple[Stored, bool] | None":
        """The next record to give, and whether it was given before."""
        records = self._stream.records
        while self._again:
            seq = self._again.popleft()
            if seq not in self._pending:
                continue
            if seq in records:
                return records[seq], True
            del self._pending[seq]
            self._delivered.pop(seq, None)
        if self._explicit and len(self._pending) >= self._pending_max:
            return None
        while self._initial:
            seq = self._initial.popleft()
            if seq in records:
                return records[seq], False
        self._next = max(self._next, self._stream.first_seq)
        while self._next <= self._stream.last_seq:
            found = records.get(self._next)
            self._next += 1
            if found is not None and self._wants(found.subject):
                return found, False
        return None

    def _put_back(self, record: "Stored", *, again: bool) -> None:
        if again:
            self._again.appendleft(record.seq)
        elif record.seq >= self._next - 1:
            self._next = record.seq
        else:
            self._initial.appendleft(record.seq)

    def _taker(self, record: "Stored") -> _Pull | None:
        """The next pull that is still listened for and may take the record."""
        while self._waiting:
            pull = self._waiting.popleft()
            if not self._host.interested(pull.reply):
                _cancel(pull)
                continue
            if pull.limited and pull.bytes_left < self._size(record):
                self._waiting.appendleft(pull)
                self._end(pull, self._unserved("409", "Message Size Exceeds MaxBytes", pull))
                continue
            return pull
        return None

    def _left_over(self) -> int:
        """Records that were never given, beside the one that was just taken."""
        begin, end = max(self._next, self._stream.first_seq), self._stream.last_seq
        if begin > end:
            return len(self._initial)
        records = self._stream.records
        if self._everything and len(records) == end - self._stream.first_seq + 1:
            return len(self._initial) + end - begin + 1
        return len(self._initial) + sum(
            seq in records and self._wants(records[seq].subject) for seq in range(begin, end + 1)
        )

    @staticmethod
    def _size(record: "Stored") -> int:
        return len(record.subject) + len(record.payload)

    # ---- giving

    def _send(self, pull: _Pull, record: "Stored", left_over: int) -> None:
        now_ns = self._host.now_ns()
        self._number += 1
        self._last_sent_seq = max(self._last_sent_seq, record.seq)
        delivered = 1
        if self._explicit:
            delivered = self._delivered[record.seq] = self._delivered.get(record.seq, 0) + 1
            self._pending[record.seq] = _Pending(now_ns + self._ack_wait_ns)
            self._arm(now_ns + self._ack_wait_ns)
        reply = (
            f"$JS.ACK.{self._stream.name}.{self.name}.{delivered}.{record.seq}.{self._number}."
            f"{record.at_ns}.{left_over}"
        )
        self._host.deliver(pull.reply, record.subject, reply, record.payload, record.headers)
        pull.left -= 1
        pull.bytes_left -= self._size(record)
        pull.spoke_ns = now_ns
        if pull.left:
            self._waiting.append(pull)
        else:
            _cancel(pull)
            if pull.limited:
                self._answer(pull, self._unserved("409", "Batch Completed", pull))

    def _unserved(self, status: str, text: str, pull: _Pull) -> dict[str, str]:
        return {
            "Status": status,
            "Description": text,
            "Nats-Pending-Messages": str(pull.left),
            "Nats-Pending-Bytes": str(pull.bytes_left),
        }

    def _answer(self, pull: _Pull, headers: Mapping[str, str]) -> None:
        self._host.deliver(pull.reply, pull.reply, "", b"", headers)

    def _end(self, pull: _Pull, headers: Mapping[str, str]) -> None:
        self._waiting.remove(pull)
        _cancel(pull)
        self._answer(pull, headers)

    def _expire(self, pull: _Pull) -> None:
        if pull in self._waiting:
            self._end(pull, self._unserved("408", "Request Timeout", pull))

    def _arm_heartbeat(self, pull: _Pull, in_ns: int) -> None:
        pull.timers.append(self._host.after(max(in_ns, 1) / NANOSECONDS, self._heartbeat, pull))
        del pull.timers[:-2]

    def _heartbeat(self, pull: _Pull) -> None:
        if pull not in self._waiting:
            return
        now_ns = self._host.now_ns()
        quiet_ns = now_ns - pull.spoke_ns
        if quiet_ns < pull.heartbeat_ns:
            self._arm_heartbeat(pull, pull.heartbeat_ns - quiet_ns)
            return
        pull.spoke_ns = now_ns
        headers = {
            "Status": "100",
            "Description": "Idle Heartbeat",
            "Nats-Last-Consumer": str(self._number),
            "Nats-Last-Stream": str(self._last_sent_seq),
        }
        self._answer(pull, headers)
        self._arm_heartbeat(pull, pull.heartbeat_ns)

    # ---- giving again

    def _give_again(self, seq: int) -> None:
        if seq not in self._again:
            self._again.append(seq)
        self._pending[seq].deadline_ns = self._host.now_ns() + self._ack_wait_ns

    def _arm(self, deadline_ns: int) -> None:
        if self._timer is not None and self._timer_ns <= deadline_ns:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_s = max(0, deadline_ns - self._host.now_ns()) / NANOSECONDS
        self._timer = self._host.after(delay_s, self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        now_ns = self._host.now_ns()
        for seq in [s for s, pending in self._pending.items() if pending.deadline_ns <= now_ns]:
            self._give_again(seq)
        if self._pending:
            self._arm(min(pending.deadline_ns for pending in self._pending.values()))
        self.pump()


def _cancel(pull: _Pull) -> None:
    for timer in pull.timers:
        timer.cancel()
