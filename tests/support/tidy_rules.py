"""The repository's own rules as functions: files in, complaints out.

What ruff, mypy and import-linter can check is theirs (line length, prints, complexity, layers);
here is what they cannot. A complaint is one line: where, what, and what to do instead.
``tests/test_tidy.py`` runs the rules over the repository, and over samples that must be refused.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from tests.support import golden

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FILE_BYTES_MAX = 512 * 1024
MAIN_LINES_MAX = 40
SIZE_PAGE = "docs/architecture.md"
#: Private attributes of others that tests read, call or replace. It only falls: what a test needs
#: to see is public, or seen in what the object does.
PRIVATE_ATTRIBUTES_MAX = 32
#: Comparisons of whole sentences with literals in tests. It only falls: what the product says
#: stands in a golden text (tests/support/golden.py), and tests assert reasons and facts.
SENTENCES_MAX = 82
#: A text of at least so many words is a sentence.
SENTENCE_WORDS_MIN = 4
#: Private by their spelling only: a named tuple's own methods, and two functions that the
#: documentation of `os` has, and `asyncio.events.__all__`.
_PUBLIC_OF_PYTHON = frozenset(
    ["_asdict", "_exit", "_fields", "_make", "_replace", "_set_running_loop"]
)

#: Parameters of the planner's core that are its whole state, all tables of objects, or the cycle.
#: It only falls: what uses one or two tables takes these.
BAGS_MAX = 275
_BAGS = frozenset(["State", "Tables", "CycleContext"])

PRODUCT_ROOTS = ("services", "shared", "tutti")
SOURCE_ROOTS = ("services", "shared", "tutti", "release", "bench")
# And errors.py, where a service has errors of its own.
SERVICE_FILES = ("__init__.py", "__main__.py", "service.py", "config.py")
# One of each: a file, or a package inside the core where one file is too small for it.
SERVICE_CORES = ("core.py", "core/__init__.py")
SERVICE_STATES = ("state.py", "core/state/__init__.py")
BANNED_NAMES = frozenset(
    ["util", "utils", "helper", "helpers", "common", "misc", "base", "stuff", "tools"]
)
PURE = re.compile(
    r"^(shared/(model|contracts|dialects|job_plugins)/|services/[^/]+/(core[./]|state\.py|policies/))"
)
# Found by scanning their folder, so nothing imports them by name.
DISCOVERED = re.compile(
    r"^(shared/(dialects|job_plugins)|services/.+/(policies|filters|scoring))/[^/]+\.py$"
)
#: An import by name, at the first use.
LAZY_IMPORT = re.compile(r"([a-z_]+(?:\.[a-z_]+)+):[a-z_]+")
ENTRY_POINTS = re.compile(r"(^|/)(__init__|__main__)\.py$|^tutti/cli\.py$|^bench/")

#: A row of the table of sizes.
_SIZE = re.compile(r"^\| `([\w/]+)` \| ([\d,]+) \|", re.MULTILINE)
# Spelled in pieces, or this file would break its own rule.
_REGISTRIES = re.compile(
    "|".join(
        re.escape(host + "." + domain)
        for host, domain in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("proxy.golang", "org"),
            ("sum.golang", "org"),
            ("crates", "io"),
        )
    )
)
_MACHINE_PATHS = re.compile(r"(?:^|[^\w.$}/*-])/(?:work|farm|root|tmp|home/\w+)/\w", re.ASCII)
_UNFINISHED = re.compile(
    r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b(?! \(#\d+\))"
)
_WORD = re.compile(r"(?<!\S)[A-Za-z]{2,}")
_DEFINITION = re.compile(r"^\s*(?:async )?def ", re.MULTILINE)
_OPENING_DOCSTRING = re.compile(r'(?:#[^\n]*\n|\s)*r?"""')
_WAIVER = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)")
_REASONED_WAIVER = re.compile(
    r"#\s*(?:noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*|(?:type|pyright): ?ignore\[[\w, -]+\])"
    r"\s*(?:[-#(:]|\u2013)\s*\w"
)


class File(NamedTuple):
    """A committed file: its path from the repository's root, and its text (empty if not text)."""

    path: PurePosixPath
    text: str
    size_bytes: int

    @property
    def is_python(self) -> bool:
        """Whether it is a Python module."""
        return self.path.suffix == ".py"

    @property
    def is_source(self) -> bool:
        """Whether it is a Python module of the product, not of its tests."""
        return self.is_python and self.path.parts[0] in SOURCE_ROOTS

    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text, filename=str(self.path))


Rule = Callable[[list[File]], Iterator[str]]


def files_are_of_readable_length(files: list[File]) -> Iterator[str]:
    """Source files stop at FILE_LINES_MAX lines, a service's ``__main__`` below MAIN_LINES_MAX."""
    for file in files:
        lines = file.text.count("\n")
        if file.path.suffix in {".py", ".go", ".sh"} and lines > FILE_LINES_MAX:
            yield f"{file.path}: {lines} lines; split it by role (limit {FILE_LINES_MAX})"
        if file.path.match("services/*/__main__.py") and lines >= MAIN_LINES_MAX:
            yield f"{file.path}: {lines} lines; it only wires and runs (under {MAIN_LINES_MAX})"


def packages_keep_their_size(files: list[File]) -> Iterator[str]:
    """Each package of the product has at most the lines that SIZE_PAGE allows it."""
    page = next((file.text for file in files if str(file.path) == SIZE_PAGE), "")
    limits = {name: int(most.replace(",", "")) for name, most in _SIZE.findall(page)}
    lines = dict.fromkeys(limits, 0)
    for file in filter(lambda file: file.is_python, files):
        places = [name for name in limits if file.path.is_relative_to(name)]
        if places:
            lines[max(places, key=len)] += file.text.count("\n")
    for name, count in lines.items():
        if count > limits[name]:
            yield (
                f"{name}: {count} lines (limit {limits[name]}); delete or merge as many as came, "
                f"or raise the limit in {SIZE_PAGE} in a commit that names the capability"
            )


def functions_fit_on_a_screen(files: list[File]) -> Iterator[str]:
    """A function's body, without its docstring, has at most FUNCTION_LINES_MAX lines."""
    for file in filter(lambda file: file.is_python, files):
        for node in ast.walk(file.tree()):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0
            if lines > FUNCTION_LINES_MAX:
                yield (
                    f"{file.path}:{node.lineno}: {node.name} has {lines} lines; keep control flow "
                    f"here and move the leaves out (limit {FUNCTION_LINES_MAX})"
                )


def modules_have_topical_names(files: list[File]) -> Iterator[str]:
    """No module or package is a drawer for everything."""
    for file in filter(lambda file: file.is_python, files):
        for part in (*file.path.parts[:-1], file.path.stem):
            if part.lower() in BANNED_NAMES:
                yield f"{file.path}: `{part}` says nothing; name it after what it is about"


def variables_say_what_they_hold(files: list[File]) -> Iterator[str]:
    """No variable of the product is called `one` or `found`: a reader would have to look up which
    kind of object it is.
    """
    for file in _of_product(files):
        for node in ast.walk(file.tree()):
            name = _bound_name(node)
            if name in {"one", "found"}:
                line = getattr(node, "lineno", 0)
                yield f"{file.path}:{line}: `{name}` does not say what it holds: a pod, a claim?"


def _of_product(files: list[File]) -> Iterator[File]:
    return (file for file in files if file.is_python and file.path.parts[0] in PRODUCT_ROOTS)


def _bound_name(node: ast.AST) -> str | None:
    """The name that this node binds; None: none."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=name):
            return name
        case _:
            return None


def loops_bind_no_attributes(files: list[File]) -> Iterator[str]:
    """`for part.packed in ...` sets a field where a reader does not look for an assignment."""
    for file in _of_product(files):
        for node in ast.walk(file.tree()):
            target = node.target if isinstance(node, ast.For | ast.comprehension) else None
            if target is not None and any(isinstance(n, ast.Attribute) for n in ast.walk(target)):
                yield f"{file.path}:{target.lineno}: a loop binds an attribute"


def services_have_the_same_files(files: list[File]) -> Iterator[str]:
    """Knowing one service is knowing all."""
    paths = {str(file.path) for file in files}
    for service in _folders(files, "services"):
        missing = [name for name in SERVICE_FILES if f"services/{service}/{name}" not in paths]
        missing += [
            " or ".join(places)
            for places in (SERVICE_CORES, SERVICE_STATES)
            if not any(f"services/{service}/{name}" in paths for name in places)
        ]
        if missing:
            yield f"services/{service}: lacks {', '.join(missing)}"


def public_classes_of_a_service_have_names_of_their_own(files: list[File]) -> Iterator[str]:
    """A class's name says which one it is."""
    first: dict[tuple[str, str], PurePosixPath] = {}
    for file in files:
        if file.path.parts[0] != "services" or file.path.suffix != ".py":
            continue
        for node in file.tree().body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                known = first.setdefault((file.path.parts[1], node.name), file.path)
                if known != file.path:
                    yield f"{file.path}: {node.name} is also a class of {known}"


def service_packages_open_with_prose(files: list[File]) -> Iterator[str]:
    """A service's ``__init__`` is its description (consumes, emits, owns, invariants), no code."""
    for file in files:
        if file.path.match("services/*/__init__.py") and len(file.path.parts) == 3:
            body = file.tree().body
            if len(body) != 1 or ast.get_docstring(file.tree()) is None:
                yield f"{file.path}: must be one docstring and nothing else"


def packages_are_regular(files: list[File]) -> Iterator[str]:
    """Every folder with modules has an ``__init__.py``, tests included.

    Without ``tests/__init__.py`` the folder ``tests/services`` would shadow the package.
    """
    paths = {file.path for file in files}
    folders = {
        folder
        for file in files
        if file.is_python and file.path.parts[0] in (*SOURCE_ROOTS, "tests")
        for folder in file.path.parents
        if folder.parts
    }
    for folder in sorted(folders):
        if folder / "__init__.py" not in paths:
            yield f"{folder}: lacks __init__.py"


def tests_mirror_the_source(files: list[File]) -> Iterator[str]:
    """Each package under services/ and shared/ has tests in the folder of the same name.

    One that only declares (the model's structs) is tested where it is used.
    """
    acting = {
        file.path.parts[:2] for file in files if file.is_source and _DEFINITION.search(file.text)
    }
    tested = {file.path.parent for file in files if file.path.match("test_*.py")}
    for root in ("services", "shared"):
        for package in _folders(files, root):
            mirror = PurePosixPath("tests", root, package)
            covered = any(folder.is_relative_to(mirror) for folder in tested)
            if (root, package) in acting and not covered:
                yield f"{root}/{package}: has no tests in {mirror}"


def modules_say_what_they_are(files: list[File]) -> Iterator[str]:
    """Every module of the product opens with a docstring."""
    for file in files:
        if file.is_source and not _OPENING_DOCSTRING.match(file.text):
            yield f"{file.path}: opens without a docstring; say what it is, takes, gives and leaves"


def modules_are_used(files: list[File]) -> Iterator[str]:
    """Every module of the product is imported by another one; a test's import does not count."""
    source = [file for file in files if file.is_source]
    imported = {name for file in source for name in _imports(file)} | _scripts(files)
    for file in source:
        path = str(file.path)
        module = path.removesuffix(".py").replace("/", ".")
        if ENTRY_POINTS.search(path) or DISCOVERED.match(path) or module in imported:
            continue
        yield f"{file.path}: nothing imports it; wire it in or delete it"


def dialects_are_not_imported_by_name(files: list[File]) -> Iterator[str]:
    """What a dialect has, it states in its `Dialect`, which `discovery` finds."""
    folder = PurePosixPath("shared/dialects")
    dialects = {
        f"shared.dialects.{file.path.stem}"
        for file in files
        if file.path.parent == folder and re.search(r"^DIALECTS?\b", file.text, re.MULTILINE)
    }
    for file in files:
        if file.is_source and file.path.parent != folder:
            for name in sorted(dialects.intersection(_imports(file))):
                yield f"{file.path}: imports {name}; ask shared.dialects.discovery"


def _scripts(files: list[File]) -> set[str]:
    """Modules that are started by name: `[project.scripts]`."""
    for file in files:
        if str(file.path) == "pyproject.toml":
            scripts = tomllib.loads(file.text).get("project", {}).get("scripts", {})
            return {target.partition(":")[0] for target in scripts.values()}
    return set()


def tests_look_inside_others_less_and_less(files: list[File]) -> Iterator[str]:
    """Tests use at most PRIVATE_ATTRIBUTES_MAX private attributes of what is not their own."""
    counts = {
        file.path: sum(map(_is_private_of_another, ast.walk(file.tree())))
        for file in files
        # Only few are worth parsing.
        if file.path.parts[0] == "tests" and file.is_python and "._" in file.text
    }
    yield from _surplus(counts, PRIVATE_ATTRIBUTES_MAX, "private attributes of others")


def tests_compare_sentences_in_golden_texts(files: list[File]) -> Iterator[str]:
    """Tests compare at most SENTENCES_MAX sentences with literals."""
    counts = {
        file.path: sum(map(_compares_a_sentence, ast.walk(file.tree())))
        for file in files
        if file.path.parts[0] == "tests" and file.is_python
    }
    words = "comparisons with whole sentences (use the fixture `golden`)"
    yield from _surplus(counts, SENTENCES_MAX, words)


def _surplus(counts: Mapping[PurePosixPath, int], most: int, words: str) -> Iterator[str]:
    """A complaint if tests have more of something than they may, with the files that have most."""
    total = sum(counts.values())
    if total > most:
        first = sorted(counts, key=lambda path: -counts[path])[:3]
        where = ", ".join(f"{path}: {counts[path]}" for path in first)
        yield f"tests: {total} {words}, limit {most}; most in {where}"


def _compares_a_sentence(node: ast.AST) -> bool:
    """Whether a comparison in an assertion is one with a sentence, or with several."""
    return isinstance(node, ast.Assert) and any(
        isinstance(compared, ast.Compare)
        and any(
            isinstance(operator, ast.Eq)
            and any(_has_a_sentence(side) for side in (compared.left, *compared.comparators))
            for operator in compared.ops
        )
        for compared in ast.walk(node.test)
    )


def _has_a_sentence(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return len(_WORD.findall(text)) >= SENTENCE_WORDS_MIN
        case ast.JoinedStr(values=values):
            parts = [each.value if isinstance(each, ast.Constant) else " it " for each in values]
            return len(_WORD.findall("".join(map(str, parts)))) >= SENTENCE_WORDS_MIN
        case ast.BinOp(left=left, right=right):
            return _has_a_sentence(left) or _has_a_sentence(right)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Dict(values=items):
            return any(map(_has_a_sentence, items))
        case _:
            return False


def golden_texts_have_their_tests(files: list[File]) -> Iterator[str]:
    """Each section of a golden text belongs to a test that uses it."""
    texts = {file.path: file.text for file in files if file.is_python}
    for file in files:
        if file.path.name != golden.NAME:
            continue
        for title in golden.titles(file.text):
            place, _, name = title.partition("::")
            test = texts.get(file.path.parent / place, "")
            if f"def {name.partition('[')[0]}(" not in test or "golden" not in test:
                yield f"{file.path}: there is no test {title}; remove its section"


def _is_private_of_another(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in _PUBLIC_OF_PYTHON
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    )


def functions_take_the_tables_that_they_read(files: list[File]) -> Iterator[str]:
    """At most BAGS_MAX parameters of the planner's core are its whole state, or much of it."""
    bags = [
        node
        for file in files
        if file.is_python and str(file.path).startswith("services/gang_planner/core/")
        for node in ast.walk(file.tree())
        if isinstance(node, ast.arg) and node.annotation is not None
        if ast.unparse(node.annotation).strip("'\"") in _BAGS
    ]
    if len(bags) > BAGS_MAX:
        words = f"{len(bags)} parameters State, Tables or CycleContext"
        yield f"planner's core: {words} (limit {BAGS_MAX})"


def pure_code_never_asks_for_now(files: list[File]) -> Iterator[str]:
    """In the pure packages time comes in the event (import-linter keeps the time module out)."""
    for file in files:
        if not (file.is_python and PURE.match(str(file.path))):
            continue
        for node in ast.walk(file.tree()):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"now", "utcnow", "today"}
            ):
                yield f"{file.path}:{node.lineno}: asks the clock; take the instant as an argument"


def nothing_names_this_machine_or_a_registry(files: list[File]) -> Iterator[str]:
    """No absolute path of a development machine, no package registry's host name."""
    for file in files:
        for number, line in enumerate(file.text.splitlines(), start=1):
            if _MACHINE_PATHS.search(line):
                yield f"{file.path}:{number}: a path of one machine; make it relative or a setting"
            if _REGISTRIES.search(line):
                yield f"{file.path}:{number}: a registry's host name; clients know their registry"


def nothing_is_left_for_later(files: list[File]) -> Iterator[str]:
    """A mark of unfinished work carries its issue, as in ``(#12)`` right after it."""
    for file in files:
        for number, line in enumerate(file.text.splitlines(), start=1):
            if _UNFINISHED.search(line):
                yield f"{file.path}:{number}: unfinished and without an issue; do it or file it"


def waivers_have_reasons(files: list[File]) -> Iterator[str]:
    """A linter's or type checker's waiver in the product names the rule and the reason."""
    for file in files:
        if not (file.is_source and _WAIVER.search(file.text)):
            continue
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
            if (
                token.type == tokenize.COMMENT
                and _WAIVER.search(token.string)
                and not _REASONED_WAIVER.search(token.string)
            ):
                yield f"{file.path}:{token.start[0]}: write the waiver as `# noqa: RULE - reason`"


def markdown_opens_with_a_title(files: list[File]) -> Iterator[str]:
    """A page starts with its one title."""
    for file in files:
        if file.path.suffix == ".md" and not file.text.startswith("# "):
            yield f"{file.path}: starts without a `# Title`"


def nothing_is_a_blob(files: list[File]) -> Iterator[str]:
    """Git never forgets: what is large is made, not committed."""
    for file in files:
        if file.size_bytes > FILE_BYTES_MAX:
            yield f"{file.path}: {file.size_bytes} bytes (limit {FILE_BYTES_MAX})"


RULES: tuple[Rule, ...] = (
    dialects_are_not_imported_by_name,
    files_are_of_readable_length,
    functions_fit_on_a_screen,
    functions_take_the_tables_that_they_read,
    golden_texts_have_their_tests,
    loops_bind_no_attributes,
    markdown_opens_with_a_title,
    modules_are_used,
    modules_have_topical_names,
    modules_say_what_they_are,
    nothing_is_a_blob,
    nothing_is_left_for_later,
    nothing_names_this_machine_or_a_registry,
    packages_are_regular,
    packages_keep_their_size,
    pure_code_never_asks_for_now,
    service_packages_open_with_prose,
    services_have_the_same_files,
    public_classes_of_a_service_have_names_of_their_own,
    tests_compare_sentences_in_golden_texts,
    tests_look_inside_others_less_and_less,
    tests_mirror_the_source,
    variables_say_what_they_hold,
    waivers_have_reasons,
)


def _folders(files: Iterable[File], root: str) -> list[str]:
    """The packages directly under ``root``, sorted."""
    return sorted(
        {
            file.path.parts[1]
            for file in files
            if file.path.parts[0] == root and len(file.path.parts) > 2
        }
    )


@cache
def _imports(file: File) -> frozenset[str]:
    return frozenset(_each_import(file))


def _each_import(file: File) -> Iterator[str]:
    """Every dotted name that an import in the file could mean: modules, and names from modules.

    A string "module:attribute" is an import too: the table of the command line is made of them.
    """
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = LAZY_IMPORT.fullmatch(node.value)
            if found is not None:
                yield found[1]
