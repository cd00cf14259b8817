"""Which code made a result: a digest of the sources that determine it."""

import ast
import hashlib
from pathlib import Path

import forethought

SOURCES = (
    *("types.py", "config.py", "config_parts.py"),
    *("environments", "prompts", "policies", "rollouts"),
    *("targets", "losses", "training", "evaluation"),
)
"""What decides the numbers. Commands, reports, benchmarks and studies only show them."""
PACKAGE = Path(forethought.__file__).parent


def code_version(package: Path = PACKAGE) -> str:
    """SHA-256 over the names and the syntax of the sources.

    Comments, docstrings and layout do not count: better words do not cost a day of training.
    """
    digest = hashlib.sha256()
    for path in _files(package):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(f"{_syntax(path)}\0".encode())
    return digest.hexdigest()


def _files(package: Path) -> list[Path]:
    found: list[Path] = []
    for name in SOURCES:
        source = package / name
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
