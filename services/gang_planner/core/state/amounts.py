"""Resource amounts as text, in Kubernetes' notation."""

from typing import Final

#: Parts of a list in a sentence: a pod may request thousands of resources.
_LISTED_MAX: Final = 12
_BINARY: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def in_words(resource: str, amount: int) -> str:
    """`2 nvidia.com/gpu`, `1500m cpu`, `1.5Gi memory`; bytes are rounded up to a tenth."""
    if resource == "cpu":
        return f"{amount // 1000} cpu" if amount % 1000 == 0 else f"{amount}m cpu"
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        for suffix, unit in _BINARY:
            if amount >= unit:
                tenths = -(-amount * 10 // unit)
                whole, tenth = divmod(tenths, 10)
                return (
                    f"{whole}.{tenth}{suffix} {resource}"
                    if tenth
                    else f"{whole}{suffix} {resource}"
                )
    return f"{amount} {resource}"


def listed(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`; of many parts the first ones, and how many more there are."""
    if len(parts) > _LISTED_MAX:
        parts = [*parts[: _LISTED_MAX - 1], f"{len(parts) - _LISTED_MAX + 1:,} more"]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
