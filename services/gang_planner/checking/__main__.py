"""`python -m services.gang_planner.checking`: a volcano-scheduler.conf in, JSON out: why it is
refused ("": it is not), and what of it has no effect.
"""

import sys

import msgspec

from services.gang_planner.core.configuration.configuration import (
    ConfigurationError,
    parse_configuration,
)


def start() -> int:
    """Judge the text on standard input."""
    error = ""
    warnings: tuple[str, ...] = ()
    try:
        warnings = parse_configuration(sys.stdin.read()).warnings
    except ConfigurationError as refusal:
        error = str(refusal)
    sys.stdout.buffer.write(msgspec.json.encode({"error": error, "warnings": warnings}))
    return 0


if __name__ == "__main__":
    sys.exit(start())
