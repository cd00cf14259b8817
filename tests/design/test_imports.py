"""Imports run one way, by the table in `packages.py`; and what no file may do."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.design.packages import PACKAGES, WITHOUT_TORCH, package_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "forethought"

HEAVY = {"torch", "transformers", "peft", "accelerate"}

MAX_LINES = 350
LONGER = {
    "tests/contract/architectures/builders.py": "one builder per architecture, all alike",
}


class Module(NamedTuple):
    name: str
    """Dotted, less `forethought.`; a package stands for its `__init__`."""
    path: Path

    @property
    def package(self) -> str:
        return package_of(self.name)

    @property
    def where(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def modules() -> list[Module]:
    found: list[Module] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found.append(Module(name, path))
    return found


MODULES = modules()
NAMES = {module.name for module in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


class Import(NamedTuple):
    module: str
    """`forethought.types`, `torch`."""
    name: str | None
    """What is taken out of it, if it is not the module itself."""
    line: int


def imports_of(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}".removeprefix("forethought.")
                if inner in NAMES:
                    yield Import(f"forethought.{inner}", None, node.lineno)
                else:
                    yield Import(node.module, alias.name, node.lineno)


class _Late(ast.NodeTransformer):
    """Drops what does not run when a module is imported."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None: ...

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def at_once(module: Module) -> ast.Module:
    """What runs when a module is imported: less the bodies of functions, and less what is
    only for type checkers."""
    return _Late().visit(ast.parse(module.path.read_text(encoding="utf-8")))


def ours(found: Import) -> str | None:
    """The module of this package that is imported, less `forethought.`."""
    package, _, name = found.module.partition(".")
    return name if package == "forethought" and name else None


# Packages


def test_the_table_has_every_package_and_only_looks_up() -> None:
    assert {module.package for module in MODULES} == set(PACKAGES)
    above: set[str] = set()
    for package, allowed in PACKAGES.items():
        assert allowed <= above, f"{package} may import {allowed - above}, which stands below it"
        above.add(package)


def test_a_package_imports_only_its_neighbors() -> None:
    strangers = [
        f"{module.where}:{found.line}: {name}"
        for module in MODULES
        for found in imports_of(tree_of(module.path))
        if (name := ours(found)) is not None
        and package_of(name) not in PACKAGES[module.package] | {module.package}
    ]
    assert strangers == []


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {
        module.name: {
            name for found in imports_of(at_once(module)) if (name := ours(found)) in NAMES
        }
        for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


def test_a_light_package_loads_nothing_heavy() -> None:
    heavy = [
        f"{module.where}:{found.line}: {found.module}"
        for module in MODULES
        if module.package in WITHOUT_TORCH
        for found in imports_of(at_once(module))
        if found.module.partition(".")[0] in HEAVY
    ]
    assert heavy == []


def test_a_loss_knows_torch_and_nothing_else() -> None:
    standard = {"collections", "math", "typing", "dataclasses", "functools"}
    for module in (module for module in MODULES if module.package == "losses"):
        for found in imports_of(tree_of(module.path)):
            name = found.module.partition(".")[0]
            assert name in {"torch", "forethought"} | standard, f"{module.where}: {found.module}"


def test_no_algorithm_imports_another() -> None:
    algorithms = {
        module.name
        for module in MODULES
        if module.package == "algorithms"
        and any(
            isinstance(node, ast.FunctionDef) and node.name.startswith("train_")
            for node in tree_of(module.path).body
        )
    }
    assert {"algorithms.sft.train", "algorithms.ppo.train"} <= algorithms
    for module in (module for module in MODULES if module.name in algorithms):
        others = {ours(found) for found in imports_of(tree_of(module.path))} & algorithms
        assert not others, f"{module.where} imports {others}"


CONFIG = re.compile(r"\b(SFT|PPO|DPO|CNN|QSFT|ILQL|Archer)Config\b")


def test_no_one_asks_for_the_class_of_settings() -> None:
    """What differs between algorithms is a question that every config answers (`AnyConfig`), or
    is in the algorithm's record."""
    asked = [
        f"{module.where}:{node.lineno}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(tree_of(module.path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"isinstance", "issubclass"}
        and CONFIG.search(ast.unparse(node.args[1]))
    ]
    assert asked == []


def test_settings_of_an_algorithm_are_known_in_its_folder() -> None:
    """And to whoever makes them: the front door, `quickstart`."""
    makers = {"__init__", "api", "cli.quickstart"}
    strangers = [
        f"{module.where}:{found.line}: {name}"
        for module in MODULES
        if module.name not in makers
        for found in imports_of(tree_of(module.path))
        if (name := ours(found)) is not None
        and package_of(name) == "algorithm_configs"
        and not module.name.startswith(name.removesuffix("config"))
    ]
    assert strangers == []


# Files


def test_private_names_stay_at_home() -> None:
    assert [place for module in MODULES for place in private_names_of_others(module)] == []


def private_names_of_others(module: Module) -> Iterator[str]:
    tree = tree_of(module.path)
    found_ours = [found for found in imports_of(tree) if ours(found) is not None]
    for found in found_ours:
        if any(part.startswith("_") for part in (*found.module.split("."), found.name or "")):
            yield f"{module.where}:{found.line}: {found.module} {found.name}"
    others = {found.module.rpartition(".")[2] for found in found_ours if found.name is None}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in others
            and re.match(r"_(?!_)", node.attr)
        ):
            yield f"{module.where}:{node.lineno}: {ast.unparse(node)}"


def test_a_file_is_read_in_one_sitting() -> None:
    lines_of = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for folder in ("src", "tests", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    }
    longer = {name: lines for name, lines in lines_of.items() if lines > MAX_LINES}
    assert set(longer) <= set(LONGER), longer


def test_exceptions_exist() -> None:
    assert [name for name in LONGER if not (ROOT / name).exists()] == []


def test_a_module_is_named_for_what_it_does() -> None:
    vague = {"utils", "util", "helpers", "common", "misc", "base"}
    assert [m.where for m in MODULES if m.name.rpartition(".")[2] in vague] == []


def test_what_is_public_is_explained() -> None:
    silent = [
        f"{module.where}:{getattr(node, 'lineno', 1)}"
        for module in MODULES
        for node in (tree_of(module.path), *tree_of(module.path).body)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and not getattr(node, "name", "").startswith("_")
        and not ast.get_docstring(node)
        and not is_record(node)
        and not is_overload(node)
    ]
    assert silent == []


def is_record(node: ast.AST) -> bool:
    """Named and typed fields, which may say enough."""
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    return any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in bases)


def is_overload(node: ast.AST) -> bool:
    """A signature for type checkers; the function itself is explained."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in decorators)


# Safety


FORBIDDEN = {
    *("eval", "exec", "compile", "__import__"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads"),
    *("torch.load", "joblib.load", "shelve.open", "dill.load", "dill.loads"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all"),
    *("os.system", "os.popen", "random.seed", "np.random.seed"),
}
"""What would run what a file or a model wrote; and the one source of numbers that all share."""
FORBIDDEN_SWITCHES = {"trust_remote_code=True", "allow_pickle=True", "shell=True"}


def test_nothing_that_is_read_is_run() -> None:
    assert [place for module in MODULES for place in dangers_in(module)] == []


def dangers_in(module: Module) -> Iterator[str]:
    for node in ast.walk(tree_of(module.path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            switches = {f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords}
            if called in FORBIDDEN or switches & FORBIDDEN_SWITCHES:
                yield f"{module.where}:{node.lineno}: {called}"
