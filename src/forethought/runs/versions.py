"""What a run ran on, in words: versions, commit and machine."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "forethought",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "accelerate",
    "safetensors",
    "gymnasium",
    "numpy",
    "pillow",
    "pyarrow",
    "pyyaml",
    "tyro",
    "tqdm",
    "tensorboard",
    "matplotlib",
    "filelock",
    "packaging",
    "uvicorn",
    "httptools",
)
"""Whose versions `environment.txt` names: this package and what it depends on."""


def describe_environment(*, torch_threads: int) -> str:
    """One fact a line; no paths, no names of persons or machines.

    Args:
        torch_threads: as set by the caller, for this room does not import torch.
    """
    lines = [
        f"python {platform.python_version()}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
        f"commit {_commit()}",
        f"system {platform.system()} {platform.machine()}",
        f"cpus {os.cpu_count()}",
        f"torch threads {torch_threads}",
    ]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of this source, if it lies in a checkout of its own."""
    # An installed package may lie inside somebody else's checkout, whose commit says nothing.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return "unknown"
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return "unknown"
    is_clean = _git("diff", "--quiet", "HEAD") is not None
    return commit if is_clean else f"{commit} with local changes"


def _git(*arguments: str) -> str | None:
    """What git prints about this source folder, or None where it fails or is not there."""
    try:
        result = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
