"""Settings of the controllers."""

from typing import Annotated, Final

from msgspec import Meta

from shared.runtime.settings import KubeSettings, SettingsError

CONTROLLERS: Final = ("podgroup", "status")


class ControllerSettings(KubeSettings, frozen=True, kw_only=True):
    """What the controllers can be told."""

    controllers: Annotated[
        tuple[str, ...], Meta(description="which controllers to run: podgroup, status")
    ] = ("status",)
    writes_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="writes of statuses, conditions, events a second")
    ] = 200
    pod_events_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="Scheduled events of pods a second, others dropped")
    ] = 10

    def __post_init__(self) -> None:
        """Refuse controllers that there are not.

        Raises:
            SettingsError: One is unknown, or none is given.
        """
        unknown = [name for name in self.controllers if name not in CONTROLLERS]
        if unknown or not self.controllers:
            named = f"unknown: {', '.join(unknown)}" if unknown else "none given"
            raise SettingsError(f"--controllers: {named}; there are: {', '.join(CONTROLLERS)}")
