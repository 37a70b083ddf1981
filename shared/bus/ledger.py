"""Reads the queue ledger from the standby planner, page by page."""

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import LedgerAnswer, LedgerQueue, LedgerRequest, LedgerTotal


async def ask_ledger(bus: Bus, *, timeout_s: float) -> LedgerAnswer:
    """The ledger of all queues as one answer. Queues that come and go between the requests for two
    pages may be missing.

    Args:
        bus: The connection to NATS.
        timeout_s: For each page.

    Raises:
        NoAnswer: No standby planner answers, or its pages do not go on.
    """
    queues: list[LedgerQueue] = []
    totals: dict[str, LedgerTotal] = {}
    after = ""
    while True:
        request = LedgerRequest(after=after)
        page = await ask(
            bus,
            subjects.ASK_LEDGER,
            request,
            codec.decode_ledger_answer,
            timeout_s=timeout_s,
        )
        # A planner of an older version answers each request with all queues.
        queues += [one for one in page.queues if one.name > after]
        totals |= {one.resource: one for one in page.totals}
        if not page.more:
            by_resource = tuple(totals[name] for name in sorted(totals))
            return LedgerAnswer(queues=tuple(queues), shared=page.shared, totals=by_resource)
        if not page.queues or page.queues[-1].name <= after:
            raise NoAnswer(f"{subjects.ASK_LEDGER}: the page after {after!r} has no further queue")
        after = page.queues[-1].name
