"""Names of Volcano Queues for the queues of other projects, which allow more characters."""

import re
from typing import Final

#: Kubernetes' and Volcano's limit for a label value, which a queue's name becomes.
NAME_CHARACTERS_MAX: Final = 63
#: The queue above all others, in Volcano and in YuniKorn.
ROOT: Final = "root"
_REFUSED: Final = re.compile(r"[^a-z0-9.-]+")


def queue_name(text: str) -> str:
    """The name that the queue `text` of another project gets, which Kubernetes allows; "" if no
    character is left.
    """
    return _REFUSED.sub("-", text.lower()).strip("-.")[:NAME_CHARACTERS_MAX].strip("-.")


def name_of_path(path: str) -> str:
    """The name for a path of YuniKorn, "root.team.a": the path without the root queue; "" for the
    root queue itself.
    """
    first, _, rest = path.partition(".")
    return queue_name(rest if first.lower() == ROOT else path)
