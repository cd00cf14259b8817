"""Deliberate breakages: each must turn red the test that is there to catch it.

A test suite is judged like any instrument, by showing it what it should detect. The
list is `mutations/*.toml`: the numeric core (losses, targets, decoding, training). To add one,
write an entry, no code:

    [[mutation]]
    breakage = "the minimum is dropped"                      # what is wrong, in words
    file = "losses/ppo.py"                                # below src/forethought
    sound = 'torch.minimum(ratio * advantages, clipped)'     # occurs exactly once in it
    broken = 'ratio * advantages'                            # what replaces it
    red = "unit/losses/test_policy.py::test_region[...]"     # below tests; must fail

(pytest spells ids in ASCII: rows are called "lambda above 1", never "λ above 1".)

Each is applied to a copy of the package; the checkout is never touched.
"""

import shutil
import tomllib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.design.warm_pytest import ROOT, RunTests, warm_pytest

PACKAGE = ROOT / "src" / "forethought"
TESTS = ROOT / "tests"

ALL_PASSED, SOME_FAILED = 0, 1  # pytest's exit codes; any other means that no verdict was reached


@dataclass(frozen=True)
class Mutation:
    """One entry of a file in `mutations/`."""

    breakage: str
    file: str
    sound: str
    broken: str
    red: str

    def applied_to(self, source: str) -> str:
        """The broken source. What matches nowhere, or twice, breaks something else than it says."""
        assert source.count(self.sound) == 1, f"not exactly once in {self.file}: {self.sound!r}"
        return source.replace(self.sound, self.broken)


MUTATIONS = [
    Mutation(**entry)
    for path in sorted(Path(__file__).with_name("mutations").glob("*.toml"))
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
]

for_each_mutation = pytest.mark.parametrize(
    "mutation", MUTATIONS, ids=[f"{mutation.file}: {mutation.breakage}" for mutation in MUTATIONS]
)


def copy_of_the_package(folder: Path) -> Path:
    """A copy without compiled files: one that is as old and as long would be believed."""
    return shutil.copytree(
        PACKAGE, folder / "src" / "forethought", ignore=shutil.ignore_patterns("__pycache__")
    )


@pytest.fixture(scope="module")
def run_tests() -> Generator[RunTests]:
    with warm_pytest() as run:
        yield run


@for_each_mutation
def test_breakage_applies(mutation: Mutation) -> None:
    """Code moves on: an entry that no longer fits it is out of date."""
    source = (PACKAGE / mutation.file).read_text(encoding="utf-8")
    assert mutation.applied_to(source) != source
    file, _, name = mutation.red.partition("::")
    assert f"def {name.partition('[')[0]}(" in (TESTS / file).read_text(encoding="utf-8")


@pytest.mark.slow
def test_sound_copy_is_green(run_tests: RunTests, tmp_path: Path) -> None:
    """Red proves nothing unless the same tests are green on a copy that nobody broke."""
    guards = sorted({mutation.red for mutation in MUTATIONS})
    result = run_tests(copy_of_the_package(tmp_path), *guards)
    assert result.code == ALL_PASSED, result.output


@pytest.mark.slow
@for_each_mutation
def test_breakage_turns_its_test_red(
    mutation: Mutation, run_tests: RunTests, tmp_path: Path
) -> None:
    package = copy_of_the_package(tmp_path)
    target = package / mutation.file
    target.write_text(mutation.applied_to(target.read_text(encoding="utf-8")), encoding="utf-8")
    result = run_tests(package, mutation.red)
    assert result.code != ALL_PASSED, f"survived: {mutation.breakage}"
    assert result.code == SOME_FAILED, f"no verdict:\n{result.output}"
