"""Words that readers would have to learn first, with what to write instead.

`../shared/vocabulary.md` has the rules and the reasons. One rule covers what readers and users see:
comments, docstrings and sentences in strings of the source, and documents. The other one covers
the names that the source defines.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import Final

from tests.support.tidy_rules import File

#: Word or phrase -> what to write instead.
BANNED: Final = {
    "whoever": "every client that, every gang that",
    "whomever": "any gang",
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
    "who": "the gang that, the process that (who: of people only)",
    "anybody": "any client, any service",
    "everybody": "all services, all gangs",
    "for good": "finally, permanently",
    "in vain": "without effect",
    "all the same": "nevertheless",
    "for people": "for users",
    "meanwhile": "name the time: during the restart, until then",
    "owe": "reserve for",
    "owed": "reserved for",
    "befalls": "happens to",
    "hopeless": "cannot finish",
    "story": "event history",
    "wish": "request, preference",
    "door": "interface",
    "it is over": "it has ended",
}
#: Words of names -> what to call the thing instead.
BANNED_IN_NAMES: Final = {
    "told": "reported, published, messages",
    "tells": "reports",
    "telling": "reporting",
    "anew": "again",
    "incarnation": "generation, uid",
    "lobby": "admission queue",
    "loan": "release of a reservation",
    "nursery": "fork server",
    "picture": "state, snapshot, plot",
    "reign": "epoch",
    "rival": "other scheduler",
    "shelf": "volumes",
    "stray": "foreign",
    "story": "history",
    "wish": "request, preference",
    "hopeless": "cannot finish",
    "who": "the kind of thing",
    "whoever": "the kind of thing",
    "whomever": "any gang",
    "whom": "the kind of thing",
    "anybody": "the kind of thing",
    "everybody": "the kind of thing",
    "nobody": "the kind of thing",
    "somebody": "the kind of thing",
}
#: Files in which a word stays, each with the reason.
ALLOWED: Final = {
    ("services/gang_planner/core/verdicts/pending_reason.py", "the others"): "a verdict's wording",
    ("tutti/migrate/comparison.py", "tells"): "a value of `level`",
    ("tutti/migrate/observation.py", "rival"): "a column of the table",
    **{
        ("tests/recordings/tape.py", word): "sentences of planners before the vocabulary"
        for word in ("under way", "the others", "picture", "nobody", "takes back")
    },
    ("tests/controlplane/test_control_plane.py", "nobody"): "the name of an account",
    ("bench/__main__.py", "who"): "a user",
    ("bench/upgrade.py", "who"): "an operator",
    ("tests/oracle/running.py", "who"): "a user",
    ("tests/controlplane/cluster.py", "who"): "a user",
    **{
        (f"tests/services/gang_planner/core/{path}", "the others"): "a verdict's wording"
        for path in (
            "queries/test_would_fit.py",
            "test_seeds.py",
            "verdicts/test_book.py",
        )
    },
    ("tests/services/gang_planner/core/test_invariants.py", "owed"): "a violation's wording",
    ("tests/tutti/queues/test_view.py", "owed"): "a column of the table",
}
#: Names that stay, each with the reason.
ALLOWED_NAMES: Final = {
    ("tests/controlplane/test_control_plane.py", "nobody"): "the name of an account",
    ("tests/simulation/patches.py", "nobody"): "an account that is none",
    ("tutti/migrate/observation.py", "only_rival"): "a field of the JSON that users read",
}
#: Sources that are checked.
_SOURCES: Final = ("services/", "shared/", "tutti/", "bench/", "tests/")
#: Files about the words themselves.
_ABOUT_WORDS: Final = ("tests/support/banned_words.py", "tests/test_tidy.py")
#: Scenarios as YAML: their titles are names of tests.
_SCENARIOS: Final = "tests/scenarios/"
#: Documents that are not checked: reports of past runs, and pages made from the code.
_HISTORY: Final = ("docs/certificates/", "docs/reference/")


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, words), key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(longest_first)})(s?)\b", re.IGNORECASE)


_PROSE: Final = _pattern(BANNED)
#: What comes before a "who" that is right.
_OF_PEOPLE: Final = re.compile(r"\b(users?|engineers?|operators?) \Z", re.IGNORECASE)
#: Names of things, not prose: code, fields of f-strings, targets of links.
_CODE: Final = re.compile(r"`[^`\n]*`|\{[^{}\n]*\}|\]\([^)\n]*\)")
#: The words of a name: of snake_case, CamelCase and UPPER_CASE.
_WORDS_OF_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def readers_need_no_private_vocabulary(files: list[File]) -> Iterator[str]:
    """Prose uses no banned word, but where ALLOWED has a reason."""
    for file in files:
        path = str(file.path)
        if path.endswith(".md") and not path.startswith(_HISTORY):
            lines = _outside_code(file.text)
        elif file.is_python and path.startswith(_SOURCES) and path not in _ABOUT_WORDS:
            lines = _prose_of(file.text)
        elif path.endswith(".yaml") and path.startswith(_SCENARIOS):
            lines = _titles_of(file.text)
        else:
            continue
        for number, line in lines:
            prose = _CODE.sub("", line)
            for match in _PROSE.finditer(prose):
                word = match[0].lower()
                known = word if word in BANNED else word.removesuffix("s")
                if known == "who" and _OF_PEOPLE.search(prose, 0, match.start()):
                    continue
                if (path, known) not in ALLOWED:
                    yield f"{path}:{number}: `{match[0]}`; write {BANNED[known]}"


def names_need_no_private_vocabulary(files: list[File]) -> Iterator[str]:
    """Names have no word of BANNED_IN_NAMES, but where ALLOWED_NAMES has a reason."""
    for file in files:
        path = str(file.path)
        if not file.is_python or not path.startswith(_SOURCES) or path in _ABOUT_WORDS:
            continue
        for number, name in _names_of(file):
            if (path, name) in ALLOWED_NAMES:
                continue
            for word in _WORDS_OF_NAME.findall(name):
                if word.lower() in BANNED_IN_NAMES:
                    instead = BANNED_IN_NAMES[word.lower()]
                    yield f"{path}:{number}: `{word}` in the name {name}; write {instead}"


def _names_of(file: File) -> Iterator[tuple[int, str]]:
    """The names that a file defines, its own among them, by line."""
    yield 1, file.path.stem
    for node in ast.walk(ast.parse(file.text)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case _:
                pass


def _outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a document that are not in a code block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _titles_of(text: str) -> Iterator[tuple[int, str]]:
    """Titles of scenarios, by line."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("title:"):
            yield number, line


def _prose_of(text: str) -> Iterator[tuple[int, str]]:
    """Comments, and strings of more than one word, by line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        of_words = token.type == tokenize.STRING and " " in token.string
        if token.type == tokenize.COMMENT or of_words:
            yield from enumerate(token.string.splitlines(), token.start[0])
