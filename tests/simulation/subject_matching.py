"""NATS subjects and patterns: `*` stands for one token, `>` at the end for one or more."""

import functools


@functools.lru_cache(maxsize=65536)
def matches(pattern: str, subject: str) -> bool:
    """Whether a subject falls under a pattern."""
    if pattern == subject:
        return True
    if "*" not in pattern and ">" not in pattern:
        return False
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        want in {"*", have} for want, have in zip(wanted, given, strict=True)
    )
