"""The longest durations that a gang's objects may ask for, where the duration keeps capacity from
other gangs, or protects pods from eviction for them.

The operator sets the ceilings. A longer value is shortened to the ceiling when the planner reads it
(`core.state.gang_settings`); the webhook warns, and the gang has the condition `DurationShortened`.
What a queue sets, which only an administrator may write, has no ceiling.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from shared.contracts import annotations


class Ceilings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In seconds. They are part of the planner's configuration, so that a replay makes the same
    decisions.
    """

    #: Ten times the default: enough for a controller that makes a lost pod again after an alert.
    hold_s: int = 600
    #: YuniKorn's default timeout of placeholders, which is longer than our own default.
    reserve_s: int = 900
    #: Koordinator's default waiting time.
    repair_deadline_s: int = 600
    #: Long enough for a checkpoint of most training jobs.
    minimum_run_s: int = 3_600

    def of(self, setting: str) -> int | None:
        """The ceiling of a setting, in seconds; None: it has none."""
        name = LIMITED.get(setting)
        return None if name is None else int(getattr(self, name))


def ceilings_of(settings: object) -> Ceilings:
    """The ceilings in a service's settings: each field with `_max` behind its name."""
    names = Ceilings.__struct_fields__
    return Ceilings(**{name: getattr(settings, f"{name}_max") for name in names})


DEFAULT_CEILINGS: Final = Ceilings()
#: The ceiling of each setting that acts on other gangs; its flag is `--NAME-max`.
LIMITED: Final[Mapping[str, str]] = {
    annotations.HOLD_SECONDS: "hold_s",
    annotations.RESERVE_SECONDS: "reserve_s",
    annotations.REPAIR_DEADLINE_SECONDS: "repair_deadline_s",
    annotations.MINIMUM_RUN_SECONDS: "minimum_run_s",
    annotations.COOLDOWN_TIME: "minimum_run_s",
}
#: Settings in seconds without a ceiling, and why none of them acts on other gangs.
UNLIMITED: Final[Mapping[str, str]] = {
    annotations.DEGRADED_GRACE_SECONDS: "it ends by a release of the gang itself",
    annotations.PLACEMENT_DEADLINE_SECONDS: "it ends by the gang's own end",
    annotations.START_DEADLINE_SECONDS: "it ends by a release of the gang itself",
}


def in_words(path: str, given_s: int, most_s: int, setting: str) -> str:
    """A sentence with a duration, the ceiling that applies instead, and its flag."""
    flag = f"--{LIMITED[setting].replace('_', '-')}-max"
    return f"{path}: {given_s} s is above the ceiling of {most_s} s ({flag}), which applies"
