"""``python -m tests.fuzz --minutes N``: millions of inputs, counted per target.

Ends with status 1 when an input ended in anything but a result or the target's typed refusal, or
took more time or memory than its size allows. A finding names its target and seed; with both given
(`--target NAME --seed N`), that input alone is made and fed again.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.fuzz.running import Ceiling, Finding, Tally, tried
from tests.fuzz.targets import Target, targets

#: Inputs to one target before the next has its turn.
_TURN = 25
#: PyYAML takes a hundred times as long as anything else: its targets have every eighth turn.
_YAML_EVERY = 8 * _TURN
#: More findings are not looked for.
_FINDINGS_MAX = 20


def main() -> None:
    """Run the targets."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--target", default="", help="only those whose name contains this")
    parser.add_argument("--seed", type=int, help="only this one")
    arguments = parser.parse_args()
    chosen = [one for one in targets() if arguments.target in one.name]
    if arguments.seed is not None:
        findings = [tried(one, arguments.seed, Tally()) for one in chosen]
        found = [one for one in findings if one is not None]
    else:
        found = run(chosen, first=arguments.first, seconds=arguments.minutes * 60)
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    sys.exit(1 if found else 0)


def run(chosen: Sequence[Target], *, first: int, seconds: float) -> list[Finding]:
    """Feed all targets in turn until the time is over; log how much each was given."""
    tallies = {one.name: Tally() for one in chosen}
    found: list[Finding] = []
    ceiling = Ceiling()
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds and len(found) < _FINDINGS_MAX:
        for target in (one for one in chosen if not one.is_yaml or first % _YAML_EVERY == 1):
            for seed in range(first, first + _TURN):
                finding = tried(target, seed, tallies[target.name])
                if finding is not None and all(one.what != finding.what for one in found):
                    found.append(finding)
        first += _TURN
        if why := ceiling.passed():
            found.append(Finding("all targets", first, why, b""))
            break
    for name, tally in tallies.items():
        sys.stdout.write(
            f"{tally.inputs:>10,} inputs {tally.refused:>10,} refused {tally.bytes >> 20:>6,} MiB "
            f"{tally.slowest_s * 1e3:>6.0f} ms slowest  {name}\n"
        )
    total = sum(one.inputs for one in tallies.values())
    sys.stdout.write(f"{total:>10,} inputs to {len(tallies)} targets, seeds up to {first - 1}\n")
    return found


if __name__ == "__main__":
    main()
