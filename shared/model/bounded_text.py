"""Users' texts and lists of their names, shortened to a size, with the number of what is left out.

Users choose names, roles, resources and messages, and the API server bounds only the size of a
whole object. Everything that is made of them and leaves a process has a bound in bytes of UTF-8,
because messages, annotations and Events are limited in bytes.
"""

from collections.abc import Iterable
from typing import Final

#: The longest name of an object in Kubernetes. Annotations that give a role or a queue may be
#: longer; no object has such a name.
NAME_BYTES_MAX: Final = 253
#: A sentence for users; a condition of Kubernetes may have 32 KiB, a person reads two.
SENTENCE_BYTES_MAX: Final = 2_048
#: UTF-8 has at most so many bytes for a character.
_CHARACTER_BYTES_MAX: Final = 4


def shortened(text: str, bytes_max: int) -> str:
    """The text if it has at most `bytes_max` bytes of UTF-8 (64 or more); otherwise its beginning
    and the number of characters left out, which have so many bytes together.
    """
    if len(text) * _CHARACTER_BYTES_MAX <= bytes_max:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= bytes_max:
        return text
    # Not longer than the ending that names the right number, which has as many digits or fewer.
    longest = len(_left_out(len(text)).encode())
    beginning = encoded[: bytes_max - longest].decode(errors="ignore")
    return beginning + _left_out(len(text) - len(beginning))


def joined(parts: Iterable[str], separator: str, bytes_max: int = SENTENCE_BYTES_MAX // 2) -> str:
    """The parts with the separator between them; those that exceed `bytes_max` bytes together are
    counted: `a of 3; b of 2; … and 2,788 more`. The first part is always there, shortened.
    """
    all_parts = list(parts)
    named: list[str] = []
    left = bytes_max
    for part in all_parts:
        short = shortened(part, 2 * NAME_BYTES_MAX)
        left -= len(short.encode(errors="replace")) + len(separator)
        if left < 0 and named:
            named.append(f"… and {len(all_parts) - len(named):,} more")
            break
        named.append(short)
    return separator.join(named)


def _left_out(characters: int) -> str:
    return f"… ({characters:,} more characters)"
