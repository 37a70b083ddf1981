"""A process's settings as it logs them for operators: no secrets.

Files with keys and credentials are logged by their names only, as they are set; credentials inside
a URL, and whatever a field's name calls secret, are left out.
"""

import re
from typing import Final

import msgspec

from shared.runtime.redaction import HIDDEN, without_secrets

#: A field that is called so holds a secret, or the name of a file that does: `_file`, `_dir`.
_SECRET: Final = re.compile(r"password|passwd|secret|token|private|seed", re.IGNORECASE)


def told(settings: msgspec.Struct) -> dict[str, str]:
    """Every setting by name, in the order of its fields."""
    found: dict[str, str] = {}
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        if _SECRET.search(name) and not name.endswith(("_file", "_dir")):
            found[name] = HIDDEN if text else ""
        else:
            found[name] = without_secrets(text)
    return found
