"""Size of the package at some revisions, as a Markdown table.

    python benchmarks/package_size.py cf8a896 HEAD

Files and lines are those of `src/forethought`. A documented class or function is a public one, of a
module or a class, that has a docstring.
"""

import argparse
import ast
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from statistics import median

PACKAGE = "src/forethought"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def main() -> None:
    """Prints one column per revision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revisions", nargs="+", help="of git")
    revisions: Sequence[str] = parser.parse_args().revisions
    columns = [dict(measured(read(revision))) for revision in revisions]
    print("| " + " | ".join(["", *revisions]) + " |")
    print("|---" * (len(revisions) + 1) + "|")
    for name in columns[-1]:
        print("| " + " | ".join([name, *(column[name] for column in columns)]) + " |")


def read(revision: str) -> dict[str, str]:
    """Every Python file of the package, by its path within it."""
    listed = _git("ls-tree", "-r", "--name-only", revision, PACKAGE).splitlines()
    return {
        str(PurePosixPath(path).relative_to(PACKAGE)): _git("show", f"{revision}:{path}")
        for path in listed
        if path.endswith(".py")
    }


def measured(sources: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Names and figures."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    lines = {path: len(text.splitlines()) for path, text in sources.items()}
    longest = max(lines, key=lines.__getitem__)
    functions = {
        (path, node.name): node.end_lineno - node.lineno + 1
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }
    where, name = max(functions, key=functions.__getitem__)
    public = [node for tree in trees.values() for node in _public(tree)]
    documented = sum(ast.get_docstring(node) is not None for node in public)
    yield "files", f"{len(sources)}"
    yield "lines", f"{sum(lines.values()):,}"
    yield "median lines of a file", f"{median(lines.values()):g}"
    yield "longest file", f"{lines[longest]} (`{longest}`)"
    yield "median lines of a function", f"{median(functions.values()):g}"
    yield "longest function", f"{functions[where, name]} (`{name}` in `{where}`)"
    yield "public functions and classes with a docstring", f"{100 * documented / len(public):.1f} %"
    tests = sum(_config_tests(path, tree) for path, tree in trees.items())
    yield "`isinstance` of an algorithm's settings outside its folder", f"{tests}"
    for algorithm in ("ppo", "q_sft", "dpo"):
        folder = [path for path in sources if path.startswith(f"algorithms/{algorithm}/")]
        own = [path for path in folder if not path.endswith("__init__.py")]
        yield f"files of `algorithms/{algorithm}/`", f"{len(own)}" if own else "no folder"
    yield "files of NumberLine", f"{sum('number_line' in path for path in sources)}"


def _public(tree: ast.Module) -> Iterator[Definition]:
    """Functions and classes of a module, and methods of its classes, that have no underscore."""
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (
                    inner
                    for inner in node.body
                    if isinstance(inner, Definition) and not inner.name.startswith("_")
                )


def _config_tests(path: str, tree: ast.Module) -> int:
    """How often a file asks whether settings are those of an algorithm; its own folder may."""
    if path.startswith("algorithms/"):
        return 0
    names = ("SFTConfig", "PPOConfig", "DPOConfig", "QSFTConfig", "ILQLConfig", "ArcherConfig")
    return sum(
        any(isinstance(inner, ast.Name) and inner.id in (*names, "CNNConfig") for inner in tested)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        for tested in [list(ast.walk(node.args[1]))]
    )


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
