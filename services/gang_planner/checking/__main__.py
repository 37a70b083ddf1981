"""Checks a scheduler's configuration before a planner is started with it, for `tutti migrate`.

`python -m services.gang_planner.checking`: a volcano-scheduler.conf on stdin; JSON on stdout with
`error`, why it is refused ("": it is valid), and `warnings`, its parts without effect.
"""

import sys

import msgspec

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.framework.arguments import ConfigurationError


def start() -> int:
    """Check the text on stdin."""
    error = ""
    warnings: tuple[str, ...] = ()
    try:
        configuration = parse_configuration(sys.stdin.read())
        error = "; ".join(configuration.misspelt)
        warnings = configuration.warnings
    except ConfigurationError as refusal:
        error = str(refusal)
    sys.stdout.buffer.write(msgspec.json.encode({"error": error, "warnings": warnings}))
    return 0


if __name__ == "__main__":
    sys.exit(start())
