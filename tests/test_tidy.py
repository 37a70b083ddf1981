"""The repository keeps its own rules, and each rule refuses what it is there to refuse."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.support import tidy_rules
from tests.support.banned_words import (
    names_need_no_private_vocabulary,
    readers_need_no_private_vocabulary,
)
from tests.support.tidy_rules import File, Rule

ROOT = Path(__file__).parents[1]
RULES = (
    *tidy_rules.RULES,
    names_need_no_private_vocabulary,
    readers_need_no_private_vocabulary,
)


@pytest.fixture(scope="module")
def repository() -> list[File]:
    """Every file that git knows (added is enough) and that is still there."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    files = []
    for name in filter(None, listing.split("\0")):
        path = ROOT / name
        if path.is_file():
            content = path.read_bytes()
            text = "" if b"\0" in content else content.decode()
            files.append(File(PurePosixPath(name), text, len(content)))
    assert any(file.path.name == "test_tidy.py" for file in files), "git lists another repository"
    return files


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps_the_rule(rule: Rule, repository: list[File]) -> None:
    complaints = list(rule(repository))
    assert not complaints, "\n" + "\n".join(complaints)


def file(path: str, text: str = '"""A module."""\n') -> File:
    return File(PurePosixPath(path), text, len(text))


def service(name: str, *, without: str = "") -> list[File]:
    names = [*tidy_rules.SERVICE_FILES, "core.py", "state.py"]
    return [file(f"services/{name}/{each}") for each in names if each != without]


LONG_BODY = "def f():\n" + '    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 71
MARK = "TO" + "DO"
HOST = "pypi" + ".org"

REFUSED: list[tuple[Rule, str, list[File]]] = [
    (tidy_rules.files_are_of_readable_length, "601 lines", [file("tutti/a.py", "\n" * 601)]),
    (
        tidy_rules.files_are_of_readable_length,
        "under 40",
        [file("services/a/__main__.py", "\n" * 40)],
    ),
    (tidy_rules.functions_fit_on_a_screen, "f has 71 lines", [file("tutti/a.py", LONG_BODY)]),
    (
        tidy_rules.functions_take_the_tables_that_they_read,
        "300 parameters State, Tables or CycleContext",
        [
            file(
                "services/gang_planner/core/a.py",
                "def f(state: 'State', gang: Gang, work: CycleContext) -> None: ...\n" * 150,
            )
        ],
    ),
    (
        tidy_rules.packages_keep_their_size,
        "tutti: 3 lines (limit 2)",
        [
            file(tidy_rules.SIZE_PAGE, "| `tutti` | 2 |\n| `tutti/why` | 1,000 |\n"),
            file("tutti/a.py", "\n" * 3),
            file("tutti/why/b.py", "\n" * 9),
        ],
    ),
    (
        tidy_rules.variables_say_what_they_hold,
        "tutti/a.py:1: `found`",
        [file("tutti/a.py", "found = 1\n"), file("bench/a.py", "one = 1\n")],
    ),
    (
        tidy_rules.variables_say_what_they_hold,
        "`one`",
        [file("tutti/a.py", "def f(one: int) -> None: ...\n")],
    ),
    (
        tidy_rules.loops_bind_no_attributes,
        "tutti/a.py:1: a loop",
        [file("tutti/a.py", "for part.packed in (False, True): ...\n")],
    ),
    (tidy_rules.modules_have_topical_names, "`utils`", [file("shared/utils/time.py")]),
    (tidy_rules.modules_have_topical_names, "`helpers`", [file("tests/helpers.py")]),
    (
        tidy_rules.services_have_the_same_files,
        "state.py or",
        service("a", without="state.py") + service("b"),
    ),
    (tidy_rules.services_have_the_same_files, "core.py or", service("a", without="core.py")),
    (
        tidy_rules.public_classes_of_a_service_have_names_of_their_own,
        "services/a/state.py: Found is also a class of services/a/core.py",
        [
            file("services/a/core.py", "class Found: ...\n"),
            file("services/b/core.py", "class Found: ...\n"),
            file("services/a/state.py", "class Found: ...\n"),
        ],
    ),
    (
        tidy_rules.service_packages_open_with_prose,
        "one docstring",
        [file("services/a/__init__.py", '"""A."""\nimport os\n')],
    ),
    (
        tidy_rules.packages_are_regular,
        "tests/services: lacks",
        [file("tests/__init__.py"), file("tests/services/test_a.py")],
    ),
    (
        tidy_rules.tests_mirror_the_source,
        "services/a: has no tests",
        [
            file("services/a/core.py", "def f() -> None: ...\n"),
            file("services/b/core.py", "def f() -> None: ...\n"),
            file("shared/model/queues.py"),
            file("tests/services/b/core/test_core.py"),
        ],
    ),
    (tidy_rules.modules_say_what_they_are, "without a docstring", [file("tutti/a.py", "A = 1\n")]),
    (
        tidy_rules.modules_are_used,
        "tutti/b.py: nothing imports it",
        [
            file("tutti/a.py", "from tutti import c\nimport tutti.a\nLAZY = 'tutti.d:run'\n"),
            file("tutti/b.py"),
            file("tutti/c.py"),
            file("tutti/d.py"),
            file("tests/test_b.py", "import tutti.b\n"),
        ],
    ),
    (
        tidy_rules.dialects_are_not_imported_by_name,
        "tutti/a.py: imports shared.dialects.b",
        [
            file("shared/dialects/b.py", "DIALECT: Final = Dialect(name='b')\n"),
            file("shared/dialects/c.py"),
            file("shared/dialects/d.py", "from shared.dialects import b\n"),
            file("tutti/a.py", "from shared.dialects.b import NAME\nimport shared.dialects.c\n"),
        ],
    ),
    (
        tidy_rules.tests_look_inside_others_less_and_less,
        "tests/test_b.py: 300",
        [
            file("shared/a.py", "x._y\n" * 300),
            file("tests/test_b.py", "x._y\nx._replace(y=1)\nself._y = cls._y\n" * 300),
        ],
    ),
    (
        tidy_rules.tests_compare_sentences_in_golden_texts,
        "tests/test_b.py: 300",
        [
            file("tutti/a.py", "assert x == 'it waits for room'\n" * 300),
            file("tests/test_b.py", "assert (x, y) == (1, f'{z} waits for room')\n" * 300),
            file("tests/test_c.py", "assert x == 'a b c d' or 'it waits for room' in x\n" * 300),
        ],
    ),
    (
        tidy_rules.golden_texts_have_their_tests,
        "no test b/test_c.py::test_gone[x]",
        [
            file(
                "tests/golden.txt", "== b/test_c.py::test_d[y]\n- x\n== b/test_c.py::test_gone[x]\n"
            ),
            file("tests/b/test_c.py", "def test_d(golden): ...\n"),
        ],
    ),
    (
        tidy_rules.pure_code_never_asks_for_now,
        "core/plan.py:1: asks the clock",
        [file("services/a/core/plan.py", "t = datetime.now(UTC)\n")],
    ),
    (
        tidy_rules.nothing_names_this_machine_or_a_registry,
        "docs/a.md:2: a path",
        [file("docs/a.md", "# A\ncd /" + "work/main\n")],
    ),
    (
        tidy_rules.nothing_names_this_machine_or_a_registry,
        "a.toml:1: a registry",
        [file("a.toml", f'url = "https://{HOST}/simple"\n')],
    ),
    (tidy_rules.nothing_is_left_for_later, ":1: unfinished", [file("a.sh", f"# {MARK} later\n")]),
    (tidy_rules.waivers_have_reasons, ":1: write", [file("tutti/a.py", "x = 1  # noqa: E1\n")]),
    (tidy_rules.waivers_have_reasons, ":1: write", [file("tutti/a.py", "x  # type: ignore\n")]),
    (tidy_rules.markdown_opens_with_a_title, "docs/a.md", [file("docs/a.md", "\n# A\n")]),
    (readers_need_no_private_vocabulary, ":1: `Whoever`", [file("shared/a.py", "# Whoever\n")]),
    (
        readers_need_no_private_vocabulary,
        ":1: `in vain`",
        [file("bench/a.py", "# In it, in vain\n")],
    ),
    (
        readers_need_no_private_vocabulary,
        "a.yaml:1: `nobody`",
        [file("tests/scenarios/gang/a.yaml", "title: nobody\nsays: {a: nobody}\n")],
    ),
    (names_need_no_private_vocabulary, ":1: `nobody` in", [file("bench/a.py", "nobody = 1\n")]),
    (
        names_need_no_private_vocabulary,
        ":1: `Rival` in",
        [file("bench/a.py", "class ARival: ...\n")],
    ),
    (names_need_no_private_vocabulary, ":1: `story` in", [file("bench/story.py")]),
    (readers_need_no_private_vocabulary, "README.md:1", [file("README.md", "An Incarnation\n")]),
    (tidy_rules.nothing_is_a_blob, "600000 bytes", [file("a.bin")._replace(size_bytes=600_000)]),
]


@pytest.mark.parametrize(
    ("rule", "complaint", "files"), REFUSED, ids=[f"{r.__name__}-{c}" for r, c, _ in REFUSED]
)
def test_the_rule_refuses_the_one_offence_in_the_sample(
    rule: Rule, complaint: str, files: list[File]
) -> None:
    (found,) = rule(files)
    assert complaint in found


def test_every_rule_is_shown_to_bite() -> None:
    assert {rule for rule, _, _ in REFUSED} == set(RULES)


@pytest.mark.parametrize(
    "text",
    [
        f"x = 1  # {MARK} (#12) when the queue is bounded\n",
        "x = f()  # noqa: S311 - jitter, no secret\n",
        "x = f()  # type: ignore[arg-type]  # a float works\n",
        'url = "https://example.org/' + 'work/a"  # a path of a page\n',
    ],
)
def test_what_has_a_reason_is_let_through(text: str) -> None:
    sample = [file("tutti/a.py", text)]
    rules = [
        tidy_rules.nothing_is_left_for_later,
        tidy_rules.nothing_names_this_machine_or_a_registry,
        tidy_rules.waivers_have_reasons,
    ]
    assert [complaint for rule in rules for complaint in rule(sample)] == []
