"""Which code made a result: a digest of the sources that determine it."""

import ast
import hashlib
from pathlib import Path

import forethought

SOURCES = (
    *("types.py", "configs", "threads.py", "value_checks.py"),
    *("environments", "prompts", "models", "generation", "value_guided", "chat", "rollouts"),
    *("targets", "losses", "offline", "training", "algorithms", "evaluation"),
    *("runs/checkpoints.py", "runs/sources.py"),
)
"""What decides the numbers: files, folders, and patterns of names. From which checkpoint a stage
starts is part of it. Commands, reports, benchmarks and studies only show them, and the rest of
`runs` stores them."""
PACKAGE = Path(forethought.__file__).parent


def code_version(package: Path = PACKAGE) -> str:
    """SHA-256 over the names and the syntax of the sources.

    Comments, docstrings and layout do not count: better words do not cost a day of training.
    """
    digest = hashlib.sha256()
    for path in sources(package):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(f"{_syntax(path)}\0".encode())
    return digest.hexdigest()


def sources(package: Path = PACKAGE) -> list[Path]:
    """The files that count."""
    found: list[Path] = []
    for name in SOURCES:
        for source in package.glob(name):
            found += source.rglob("*.py") if source.is_dir() else [source]
    return sorted(found)


def _syntax(path: Path) -> str:
    """A source without what stands beside the code: texts on their own explain, and do nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            setattr(node, "body", [part for part in body if not _is_text(part)])  # noqa: B010
    return ast.dump(tree)


def _is_text(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
