"""`python -m services.admission_webhook.checking`: a `Question` as JSON in, `Objection`s out."""

import sys

import msgspec

from services.admission_webhook.checking.stored_objects import Question, objections


def main() -> int:
    """Answer the one question on standard input; returns the exit status."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.json.encode(objections(question)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
