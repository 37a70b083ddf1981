"""Which gangs link to their traces, and where."""

from services.api.core.cluster_state import ClusterState
from services.api.core.gang_book import GangBook
from services.api.service import TraceLinks
from services.api.state import ApiState
from shared.contracts.identity import gang_trace_id
from tests.services.api.scene import verdict

TRACE = gang_trace_id("train", 1)


def test_a_trace_is_below_the_configured_address() -> None:
    for address in ("https://ops.example/jaeger", "https://ops.example/jaeger/"):
        found = TraceLinks(jaeger_url=address).url_of(TRACE)
        assert found == f"https://ops.example/jaeger/trace/{TRACE}"


def test_without_an_address_or_a_trace_there_is_no_link() -> None:
    assert TraceLinks().url_of(TRACE) == ""
    assert TraceLinks(jaeger_url="https://jaeger").url_of("") == ""


def test_a_trace_that_is_not_exported_has_no_link() -> None:
    exported, other = f"{'0' * 31}1", "f" * 32
    links = TraceLinks(jaeger_url="https://jaeger", ratio=0.5)
    assert links.url_of(exported) == f"https://jaeger/trace/{exported}"
    assert links.url_of(other) == ""
    assert TraceLinks(jaeger_url="https://jaeger", ratio=0.0).url_of(exported) == ""


def test_a_gang_links_to_its_trace_also_after_verdicts_were_forgotten() -> None:
    state = ApiState(TraceLinks(jaeger_url="https://jaeger").url_of)
    for _ in range(2):
        state.take_verdict(1, verdict("a", "train", trace_id=TRACE))
        assert _trace_url(state.gangs) == f"https://jaeger/trace/{TRACE}"
        state.forget_verdicts()
    book = GangBook(ClusterState())
    book.put_verdict(1, verdict("a", "train", trace_id=TRACE))
    assert _trace_url(book) == ""


def _trace_url(book: GangBook) -> str:
    entry = book.get(("a", "train"))
    assert entry is not None
    return book.forms(entry, sees_all=True).gang.status.trace_url
