"""Words that readers would have to learn first, with what to write instead.

`../shared/vocabulary.md` has the rules and the reasons. The check covers what the product's readers
and users see: comments, docstrings and sentences in strings of the source, and the documents at the
root. Identifiers are left to reviews, for a word such as `house` may be a test's own example.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

from tests.support.tidy_rules import File

#: Word or phrase -> what to write instead.
BANNED: Final = {
    "whoever": "every client that, every gang that",
    "whom": "for which gang, to which process",
    "somebody": "another gang, a user, an operator",
    "nobody": "no process, no gang, no client",
    "the others": "the remaining members, the other gangs",
    "under way": "in flight (decisions, requests) or in progress",
    "anew": "again",
    "once more": "again",
    "look at again": "check again",
    "looks at again": "checks again",
    "looked at again": "checked again",
    "come to know": "receive, read",
    "tell": "publish, report, log, return",
    "tells": "publishes, reports, logs, returns",
    "told": "published, reported, logged",
    "retold": "reported again",
    "telling": "publishing, reporting",
    "nursery": "fork server",
    "lobby": "admission queue",
    "loan": "temporary release of a reservation",
    "lending": "temporary release of a reservation",
    "surroundings": "reference objects",
    "debt": "hold, replacement reservation",
    "held back": "debounced",
    "knob": "setting, flag",
    "picture": "cluster state, snapshot",
    "rival": "another scheduler",
    "stray": "foreign message, unexpected record",
    "incarnation": "generation, lifetime",
    "reign": "epoch",
}
#: Files in which a word stays, each with the reason.
ALLOWED: Final = {
    ("services/gang_planner/core/verdicts/pending_reason.py", "the others"): "a verdict's wording",
    ("services/gang_planner/policy_file.py", "tell"): "a parameter's name",
    ("services/watcher/state.py", "picture"): "an attribute's name",
    ("tutti/migrate/findings.py", "tells"): "a value of `level`",
    ("tutti/observe/view.py", "rival"): "a column of the table",
}
#: What is checked: the product's sources, and the documents at the root. Those under `docs/` hold
#: about 350 such places yet.
_SOURCES: Final = ("services/", "shared/", "tutti/", "bench/")
_WORDS: Final = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, BANNED), key=len, reverse=True)) + r")(s?)\b",
    re.IGNORECASE,
)
#: Names of things, not prose: code, fields of f-strings, targets of links.
_NAMES: Final = re.compile(r"`[^`\n]*`|\{[^{}\n]*\}|\]\([^)\n]*\)")


def readers_need_no_private_vocabulary(files: list[File]) -> Iterator[str]:
    """Prose of the product uses no word of BANNED, but where ALLOWED has a reason."""
    for file in files:
        path = str(file.path)
        if path.endswith(".md") and "/" not in path and path != "CHANGELOG.md":
            lines = _outside_code(file.text)
        elif file.is_python and path.startswith(_SOURCES):
            lines = _prose_of(file.text)
        else:
            continue
        for number, line in lines:
            for match in _WORDS.finditer(_NAMES.sub("", line)):
                word = match[0].lower()
                known = word if word in BANNED else word.removesuffix("s")
                if (path, known) not in ALLOWED:
                    yield f"{path}:{number}: `{match[0]}`; write {BANNED[known]}"


def _outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a document that are not in a code block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _prose_of(text: str) -> Iterator[tuple[int, str]]:
    """Comments, and strings of more than one word, by line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        of_words = token.type == tokenize.STRING and " " in token.string
        if token.type == tokenize.COMMENT or of_words:
            yield from enumerate(token.string.splitlines(), token.start[0])
