"""Settings of the gang planner."""

from typing import Annotated, Literal

from msgspec import Meta

from shared.dialects.ceilings import Ceilings, ceilings_of
from shared.runtime.settings import CommonSettings

_SecondsMax = Annotated[
    int, Meta(ge=0, description="the longest one that a group may ask for; 0: the default only")
]


class PlannerSettings(CommonSettings, frozen=True, kw_only=True):
    """The planner's settings; it has no credentials for the cluster.

    The webhook has the same ceilings (`--hold-s-max`, `--reserve-s-max`, …), to warn with.
    """

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
    repair_deadline_s_max: _SecondsMax = Ceilings().repair_deadline_s
    hold_s: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="seconds for which the capacity of a lost member is reserved; 0: none",
        ),
    ] = 60
    hold_s_max: _SecondsMax = Ceilings().hold_s
    reserve_s: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="reserve the rest of a gang's minResources for its later pods for so long; "
            "0: minResources gate nothing",
        ),
    ] = 600
    reservations: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="gangs that wait for capacity and get a reservation, for each root of the "
            "queue tree; the file of policies may say otherwise",
        ),
    ] = 1
    estimates_s: Annotated[
        int,
        Meta(
            ge=0,
            le=3_600,
            description="seconds between two estimates of when waiting gangs start, which the "
            "standby makes in a copy of its process; 0: none are made",
        ),
    ] = 15
    reserve_s_max: _SecondsMax = Ceilings().reserve_s
    minimum_run_s_max: Annotated[
        int,
        Meta(
            ge=0,
            description="seconds of protection from eviction that a group or pod may ask for",
        ),
    ] = Ceilings().minimum_run_s
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

    interned_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "how many pod shapes and terms, of about 2 KiB each, may stay in memory beside "
                "twice those it began with, before the planner reads everything again without "
                "those that no object has any more; a resource's name counts as 20"
            ),
        ),
    ] = 20_000

    @property
    def ceilings(self) -> Ceilings:
        """The longest durations that groups and pods may ask for."""
        return ceilings_of(self)
