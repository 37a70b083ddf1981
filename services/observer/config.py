"""Settings of the observer."""

from typing import Annotated

from msgspec import Meta

from shared.runtime.settings import CommonSettings


class ObserverSettings(CommonSettings, frozen=True, kw_only=True):
    """An observer's settings; it has no credentials for the cluster."""

    #: Other schedulers run about one cycle a second, and bind within a few seconds.
    stand_s: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="the capacity of a decision is reserved for this long, as if carried out",
        ),
    ] = 10.0
    report_file: Annotated[
        str, Meta(description="where the report is kept as JSON; empty: it is only printed")
    ] = ""
    report_s: Annotated[float, Meta(ge=0.1, description="seconds between two writings of it")] = 5.0
    gone_max: Annotated[
        int, Meta(ge=0, description="gangs that have gone and are still in the report")
    ] = 5_000
