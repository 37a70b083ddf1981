"""The Dockerfile's steps, run in a clean folder: there is no engine for images here."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_ROOT: Final = Path(__file__).parents[2]
_LINES: Final = re.sub(r"\\\n\s*", "", (_ROOT / "Dockerfile").read_text("utf-8")).splitlines()
_STEPS: Final = [line.split(" ", 1) for line in _LINES if line and not line.startswith("#")]
_BUILD_S: Final = 900.0


class Built(NamedTuple):
    """What the first stage left."""

    place: Path
    bin: Path
    wheel: Path


def _build(place: Path) -> Built:
    """Play the first stage: /opt is ``place/opt``, and the working folder ``place/src``."""
    source = place / "src"
    source.mkdir()
    variables = {
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin",
        "HOME": str(place),
    }
    stages = [index for index, step in enumerate(_STEPS) if step[0] == "FROM"]
    for word, rest in _STEPS[stages[0] : stages[1]]:
        match word:
            case "ENV" | "ARG":
                for pair in shlex.split(rest):
                    name, _, value = pair.partition("=")
                    variables.setdefault(name, os.path.expandvars(value))
            case "COPY":
                *names, target = rest.split()
                for name in names:
                    _copy(_ROOT / name, source / target / ("" if target == "./" else "."))
            case "RUN":
                command = rest.replace("/opt/", f"{place}/opt/")
                done = subprocess.run(
                    ["sh", "-ec", command],
                    cwd=source,
                    env=variables,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=_BUILD_S,
                )
                assert done.returncode == 0, done.stderr[-3000:]
            case _:
                assert word in {"FROM", "WORKDIR"}, word
    (wheel,) = (source / "dist").glob("*.whl")
    return Built(place, place / "opt" / "tutti" / "bin", wheel)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The first stage, played once."""
    return _build(tmp_path_factory.mktemp("image"))


def test_the_image_is_nobodys_root_and_brings_no_build() -> None:
    stages = [index for index, step in enumerate(_STEPS) if step[0] == "FROM"]
    last = _STEPS[stages[-1] :]
    assert len(stages) == 2
    assert ["USER", "65532:65532"] in last
    assert [rest for word, rest in last if word == "COPY"] == ["--from=build /opt/tutti /opt/tutti"]
    assert all("pip" not in rest for word, rest in last if word == "RUN")


def test_every_installation_checks_hashes_or_is_our_own_wheel() -> None:
    steps = [rest for word, rest in _STEPS if word == "RUN"]
    installs = re.findall(r"pip install[^&]*", " ".join(steps))
    assert len(installs) == 3
    for one in installs:
        assert "--require-hashes" in one or ("--no-deps" in one and "dist/" in one)


@pytest.mark.certify
@pytest.mark.timeout(1200)
def test_the_image_has_every_program_and_no_installer(built: Built) -> None:
    programs = [
        ["tutti", "--version"],
        ["tutti", "provision", "--help"],
        ["tutti", "nats-reload", "--help"],
        ["tutti", "crds", "print"],
        ["python", "-m", "shared.bus.setup", "--help"],
        *(
            ["python", "-m", f"services.{path.parent.name}", "--help"]
            for path in sorted((_ROOT / "services").glob("*/__main__.py"))
        ),
    ]
    for program, *arguments in programs:
        done = subprocess.run(
            [built.bin / program, *arguments],
            cwd="/",
            env={"PATH": str(built.bin)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program} {arguments}: {done.stderr[-2000:]}"
    packages = {
        path.name.partition("-")[0] for path in built.bin.parent.glob("lib/*/site-packages/*")
    }
    assert {"services", "shared", "tutti", "nats"} <= packages
    assert not {"pip", "setuptools", "pytest", "hatchling", "mypy"} & packages


@pytest.mark.certify
@pytest.mark.timeout(1200)
def test_the_same_sources_give_the_same_wheel_elsewhere_and_later(
    built: Built, tmp_path: Path
) -> None:
    source = tmp_path / "elsewhere"
    # Without their times: files are as old as the copy.
    shutil.copytree(
        built.place / "src",
        source,
        copy_function=shutil.copyfile,
        ignore=shutil.ignore_patterns("dist"),
    )
    (epoch,) = (rest for word, rest in _STEPS if word == "ARG" and "SOURCE_DATE_EPOCH" in rest)
    name, _, value = epoch.partition("=")
    subprocess.run(
        [
            built.place / "opt" / "build" / "bin" / "python",
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
        ],
        cwd=source,
        env={name: value},
        check=True,
        capture_output=True,
    )
    (wheel,) = (source / "dist").glob("*.whl")
    digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (built.wheel, wheel)]
    assert digests[0] == digests[1]
