"""Settings of the gang planner."""

from typing import Annotated, Literal

from msgspec import Meta

from shared.runtime.settings import CommonSettings


class PlannerSettings(CommonSettings, frozen=True, kw_only=True):
    """The planner's settings; it has no credentials for the cluster."""

    scheduler_conf: Annotated[
        str, Meta(description="volcano-scheduler.conf, watched; empty: the built-in configuration")
    ] = ""
    consumer_sets: Annotated[
        int,
        Meta(
            ge=0,
            description="hold a free one of this many sets of consumers, by a lease; 0: use the "
            "set that --ordinal numbers",
        ),
    ] = 0
    strict_conf: Annotated[
        bool, Meta(description="refuse a file with parts that have no effect, instead of warning")
    ] = False
    preflight: Annotated[
        Literal["owners", "always"],
        Meta(
            description="dry-run all bindings of a gang before the first is sent: where its pods' "
            "owners would pay for a release, or always"
        ),
    ] = "owners"
    repair_deadline_s: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="release the bound pods of a gang that is not whole so many seconds "
            "after its first binding",
        ),
    ] = 30
    hold_s: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="seconds for which the capacity of a lost member is reserved; 0: none",
        ),
    ] = 60
    reserve_s: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="reserve the rest of a gang's minResources for its later pods for so long; "
            "0: minResources gate nothing",
        ),
    ] = 600
    ahead_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="decide at most as many pods ahead of the binders as they finished in so "
            "many milliseconds; 0: no limit",
        ),
    ] = 2_000
    ahead_pods_min: Annotated[
        int, Meta(ge=1, description="but at least so many pods: as many as a binder sends at once")
    ] = 32
    checkpoint_records: Annotated[
        int, Meta(ge=10, description="write a checkpoint after this many records of DECISIONS")
    ] = 10_000
    checkpoint_s: Annotated[
        int, Meta(ge=1, description="write a checkpoint after this many seconds with new records")
    ] = 60
    #: Longer than any request timeout of a binder or the API server, as late reservations are.
    cold_start_wait_s: Annotated[
        int,
        Meta(ge=0, description="decide nothing for so many seconds after NATS lost its storage"),
    ] = 120
    recording_dir: Annotated[
        str, Meta(description="folder of the standby's rolling recording; empty: none is kept")
    ] = ""
    recording_s: Annotated[int, Meta(ge=60, description="how far the recording reaches back")] = (
        1800
    )
    recording_bytes: Annotated[
        int, Meta(ge=1 << 20, description="how large the recording may become")
    ] = 256 << 20
