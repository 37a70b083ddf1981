"""One seed in the foreground: run it, shrink what broke, print the history."""

import sys
from typing import Final

from tests.simulation import canaries
from tests.simulation.claims import DEVICE_FEATURES
from tests.simulation.loop import EPOCH_MS
from tests.simulation.planting import Canary
from tests.simulation.running import Options, Result, Run, bounded, run
from tests.simulation.shrinking import shrink

_LINES_OF_ALL: Final = 60


def play_seed(
    seed: int,
    *,
    gang: str = "",
    shrink_it: bool = False,
    bug: str = "",
    device_features: bool = False,
) -> int:
    """Run `seed`, with a planted bug or none, and say what came of it; returns 1 when a promise was
    broken. With `device_features`, claims request everything of devices, whatever the seed.
    """
    claims = canaries.CANARIES[bug].claims if bug else None
    tenant = canaries.CANARIES[bug].tenant if bug else None
    if device_features:
        claims = DEVICE_FEATURES
    with canaries.planted(bug):
        options = Options(seed=seed, claims=claims, tenant=tenant)
        return _play(options, gang, shrink_it=shrink_it)


def _play(options: Options, gang: str, *, shrink_it: bool) -> int:
    if shrink_it:
        options = shrink(options)
        sys.stdout.write(_left(options))
    simulation = Run(options)
    try:
        with bounded():
            result = simulation.run()
        sys.stdout.write(_report(simulation, result, gang))
    finally:
        simulation.close()
    return 1 if result.violations else 0


def catch_canary(name: str, *, first_seed: int) -> int:
    """Plant a bug and run seeds until it is caught; returns 1 when it is not within its number."""
    wanted = canaries.CANARIES[name]
    missed: list[str] = []
    for seed in range(first_seed, first_seed + wanted.seeds):
        options = Options(
            seed=seed, overlook=wanted.overlook, claims=wanted.claims, tenant=wanted.tenant
        )
        with canaries.planted(name):
            found = run(options).violations
        for violation in found:
            if wanted.is_caught_by(violation.what):
                number = seed - first_seed + 1
                sys.stdout.write(f"{name}: caught by seed {number} of {wanted.seeds}: ")
                sys.stdout.write(f"{violation.gang or 'all'}: {violation.what}\n")
                return _is_clean_without_bug(options, wanted)
            missed.append(f"  seed {seed}: {violation.gang}: {violation.what[-300:]}")
    sys.stdout.write(f"{name}: NOT caught within {wanted.seeds} seeds\n" + "\n".join(missed) + "\n")
    return 1


def _is_clean_without_bug(options: Options, wanted: Canary) -> int:
    """A world that is made for a bug must not look so without it; returns 1 when it does."""
    for violation in run(options).violations if wanted.claims is not None else ():
        if wanted.is_caught_by(violation.what):
            sys.stdout.write(f"but NOT only then: {violation.gang}: {violation.what}\n")
            return 1
    return 0


def _left(options: Options) -> str:
    """What shrinking has left."""
    gangs = "all" if options.gangs is None else ", ".join(sorted(options.gangs)) or "none"
    faults = "all" if options.faults is None else str(len(options.faults))
    small = "with" if options.small else "without"
    return f"shrunk to gangs: {gangs}; faults: {faults}, {small} those of single requests\n"


def _report(simulation: Run, result: Result, gang: str) -> str:
    lines: list[str] = []
    for violation in result.violations[:3]:
        at_s = (violation.at_ms - EPOCH_MS) / 1000
        lines.append(f"BROKEN at {at_s:.3f} s: {violation.gang or 'all'}: {violation.what}")
    about = gang or next((each.gang for each in result.violations), "")
    if about:
        lines.append(simulation.history.text_of(about))
    elif result.violations:
        lines.append(simulation.history.text_of_end(_LINES_OF_ALL))
    lines.append(
        f"seed {result.seed}: {result.gangs} gangs, {result.kills} kills, "
        f"{sum(result.faults.values())} faults, {result.virtual_ms / 1000:.0f} virtual seconds in "
        f"{result.cpu_ms} ms of CPU, digest {result.digest}"
    )
    lines.append(f"records: {result.counts}")
    lines.append(f"faults: {result.faults}")
    return "\n".join(lines) + "\n"
