"""What stands in for a service's parts in the simulation has all that they have."""

from shared.telemetry.metrics import ComponentMetrics, Metrics
from tests.simulation.patches import _NoMetrics


def test_discarded_metrics_have_every_method_of_real_ones() -> None:
    read, unread = Metrics("binder"), _NoMetrics("binder")
    # The server that shows them is replaced as well.
    shown = {"exposition"}
    assert _surface(read) - shown <= _surface(unread)
    assert _surface(ComponentMetrics("binder", read.registry)) <= _surface(unread.component)


def _surface(of: object) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}
