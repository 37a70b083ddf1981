"""`python -m services.admission_webhook.checking`: a question as JSON in, objections out."""

import sys

import msgspec

from services.admission_webhook.checking.stored_objects import Question, objections


def start() -> int:
    """Answer the one question on standard input."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.json.encode(objections(question)))
    return 0


if __name__ == "__main__":
    sys.exit(start())
