"""`make sim SEED=n` and `make sim MINUTES=n`: one seed in full, or many in worker processes.

A seed that breaks a promise is run again in smaller and smaller parts, and the history of the
smallest that still breaks it is printed. Totals go to a file that the next run continues.
"""

import argparse
import sys
import time
from pathlib import Path
from random import SystemRandom

from tests.simulation.patches import run_with_fixed_hashes


def main() -> int:
    """Returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and print what broke")
    parser.add_argument("--tell", default="", help="with --seed: print this gang's history anyway")
    parser.add_argument("--canary", default="", help="plant this bug, and see it caught")
    parser.add_argument("--minutes", type=float, default=0.0, help="run fresh seeds for so long")
    parser.add_argument("--seeds", type=int, default=0, help="run so many seeds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--first", type=int, default=0, help="first seed; 0: anywhere")
    parser.add_argument(
        "--device-features",
        action="store_true",
        help="have claims request everything of devices in every seed",
    )
    parser.add_argument("--totals", type=Path, help="file of totals to continue")
    parser.add_argument("--shrink", action="store_true", help="make what broke smaller")
    given = parser.parse_args()
    run_with_fixed_hashes()
    # Imported late: with another hash seed this program starts again.
    from tests.simulation import many, single_run

    if given.seed is not None:
        return single_run.play_seed(
            given.seed,
            gang=given.tell,
            shrink_it=given.shrink,
            bug=given.canary,
            device_features=given.device_features,
        )
    first = given.first or SystemRandom().randrange(1, 2**31)
    if given.canary:
        return single_run.catch_canary(given.canary, first_seed=first)
    where = {
        "first_seed": first,
        "workers": given.workers,
        "kept_in": given.totals,
        "device_features": given.device_features,
    }
    if given.seeds:
        totals = many.run_seeds(given.seeds, **where)
    else:
        totals = many.run_for(time.monotonic() + 60 * given.minutes, **where)
    sys.stdout.write(totals.text())
    return 1 if totals.failures else 0


if __name__ == "__main__":
    sys.exit(main())
