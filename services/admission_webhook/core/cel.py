"""Literals of CEL."""


def quoted(names: tuple[str, ...]) -> str:
    """The names as the members of a list. None of them has a quote: they are DNS names."""
    return ", ".join(f"'{name}'" for name in names)


def text_of(rule: str) -> str:
    """A regular expression as a string."""
    return "'" + rule.replace("\\", "\\\\") + "'"
