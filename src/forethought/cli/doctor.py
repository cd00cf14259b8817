"""`forethought doctor`. Each check yields its findings; none raises."""

import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from forethought.cli.flags import Switch
from forethought.cli.terminal import align
from forethought.environments import find_environment, is_installed, list_environments
from forethought.environments.chess.engine import PACKAGE, find_stockfish
from forethought.errors import MissingDependencyError
from forethought.libraries import choose_threads, usable_cores
from forethought.models.model_files import INSTALL, NAME, converted_folder, missing_packages

_GIB = 2**30
_MIN_DISK_GIB = 2.0
"""Room for a run of the tiny model with its episodes, several times over."""
_MIN_MEMORY_GIB = 2.0


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    status: Literal["ok", "missing", "note"]
    message: str
    fix: str | None = None
    """A command to type, or another fix."""
    is_fatal: bool = False
    """Forethought does not work without it."""


def check_python() -> Iterator[Finding]:
    """The interpreter."""
    yield Finding("python", "ok", platform.python_version())


def check_packages() -> Iterator[Finding]:
    """What this package depends on, in the versions that it asks for."""
    for line in requires("forethought") or []:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        fix = f'pip install "{requirement.name}{requirement.specifier}"'
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield Finding(requirement.name, "missing", "not installed", fix, True)
            continue
        if requirement.specifier.contains(found, prereleases=True):
            yield Finding(requirement.name, "ok", found)
        else:
            message = f"{found} — expected {requirement.specifier}"
            yield Finding(requirement.name, "missing", message, fix, True)


def check_devices() -> Iterator[Finding]:
    """What PyTorch computes on."""
    try:
        import torch
    except (ImportError, OSError) as error:
        fix = "pip install --force-reinstall torch"
        yield Finding("device", "missing", f"torch cannot be loaded: {error}", fix, True)
        return
    yield Finding("cpu", "ok", f"{usable_cores()} core(s) for this process")
    choice = choose_threads(None)
    yield Finding("threads", "ok", f"{choice.threads} of PyTorch: {choice.reason}")
    able = torch.cpu.get_capabilities()
    if able.get("amx_bf16") or able.get("amx_tile"):
        yield Finding("cpu bf16", "ok", "AMX: --compute.precision bf16 pays for larger models")
    elif able.get("avx512_bf16"):
        yield Finding(
            "cpu bf16",
            "ok",
            "AVX-512 BF16: --compute.precision bf16 trains about 1.5 times as fast",
        )
    else:
        yield Finding("cpu bf16", "note", "not in hardware: keep --compute.precision fp32")
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(number)
            memory = f"{device.total_memory / _GIB:.0f} GiB"
            yield Finding(f"cuda:{number}", "ok", f"{device.name}, {memory}")
    else:
        also = "; Apple's MPS is there, but not used" if torch.backends.mps.is_available() else ""
        yield Finding("gpu", "note", f"no CUDA device: the tiny model trains on the CPU{also}")


def check_torchvision() -> Iterator[Finding]:
    """The faster image processors."""
    if importlib.util.find_spec("torchvision") is not None:
        yield Finding("torchvision", "ok", version("torchvision"))
    else:
        message = "not installed: images are prepared by Pillow instead, which works"
        yield Finding("torchvision", "note", message, "pip install torchvision")


def check_environments() -> Iterator[Finding]:
    """Each environment's extra packages, and programs that they call."""
    needs_stockfish = False
    for spec in list_environments():
        needs_stockfish = needs_stockfish or "chess" in spec.required_modules
        if is_installed(spec):
            yield Finding(spec.name, "ok", "installed")
        else:
            fix = f'pip install "forethought[{spec.extra}]"'
            yield Finding(spec.name, "missing", f"needs the extra {spec.extra}", fix)
    if needs_stockfish:
        if find_stockfish() is not None:
            yield Finding("stockfish", "ok", "found")
        else:
            message = "not found: Chess has its weak built-in opponent alone (no package of PyPI "
            message += "brings an engine; Debian's and Ubuntu's does)"
            yield Finding("stockfish", "missing", message, PACKAGE)


def check_renderer() -> Iterator[Finding]:
    """What draws the robot's images."""
    if not is_installed(find_environment("Manipulation")):
        return
    from forethought.environments.manipulation.camera import PACKAGES, find_renderer

    try:
        renderer = find_renderer()
    except MissingDependencyError as error:
        yield Finding("renderer", "missing", str(error).partition(" — ")[0], PACKAGES)
    else:
        yield Finding("renderer", "ok", f"{renderer.name}, without a display")


def check_smollm2() -> Iterator[Finding]:
    """The real checkpoint that comes in a package, and whether it is converted."""
    missing = missing_packages()
    if missing:
        yield Finding(NAME, "missing", f"needs {' and '.join(missing)}", INSTALL)
    elif (folder := converted_folder()).is_dir():
        yield Finding(NAME, "ok", f"converted, in {folder}")
    else:
        yield Finding(NAME, "ok", f"installed; --model {NAME} converts it once, 540 MB in {folder}")


def check_terminal() -> Iterator[Finding]:
    """Whether `forethought play` can show images."""
    size = shutil.get_terminal_size()
    colors = os.environ.get("COLORTERM", "")
    if not sys.stdout.isatty():
        yield Finding("terminal", "note", "none: `forethought play` writes its images to files")
    elif colors in ("truecolor", "24bit"):
        yield Finding("terminal", "ok", f"{size.columns} columns, 24-bit color")
    else:
        message = f"{size.columns} columns; 24-bit color is not announced"
        fix = "if images look wrong: forethought play ENV --image png"
        yield Finding("terminal", "note", message, fix)


def check_room() -> Iterator[Finding]:
    """Disk, memory, and whether runs can be written."""
    disk = shutil.disk_usage(Path.cwd()).free / _GIB
    fix = None if disk >= _MIN_DISK_GIB else "make room, or name an --output on another disk"
    yield Finding("disk", "note" if fix else "ok", f"{disk:.1f} GiB free here", fix)
    if "SC_AVPHYS_PAGES" in os.sysconf_names:  # Not everywhere can it be asked.
        memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB
        fix = None if memory >= _MIN_MEMORY_GIB else "close other programs"
        yield Finding("memory", "note" if fix else "ok", f"{memory:.1f} GiB unused", fix)
    folder = Path("runs") if Path("runs").is_dir() else Path()
    try:
        with tempfile.TemporaryFile(dir=folder):
            yield Finding("runs", "ok", "./runs can be written")
    except OSError as error:
        fix = "cd into a folder of yours, or name an --output elsewhere"
        yield Finding("runs", "missing", f"./runs cannot be written: {error.strerror}", fix)


def check_hub() -> Iterator[Finding]:
    """Whether models may be fetched. Only asks the settings: no connection is opened."""
    flags = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    chosen = [flag for flag in flags if os.environ.get(flag, "").lower() in ("1", "true", "yes")]
    if chosen:
        message = f"{' and '.join(chosen)} set: models of the hub come from the cache alone"
        yield Finding("hub", "note", message, f"to fetch models: unset {' '.join(chosen)}")
    else:
        yield Finding("hub", "ok", "models of the Hugging Face hub may be fetched (not tried)")


DOCTOR_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_packages,
    check_devices,
    check_torchvision,
    check_environments,
    check_renderer,
    check_smollm2,
    check_terminal,
    check_room,
    check_hub,
)


@dataclass(frozen=True)
class Doctor:
    """How the findings are printed."""

    json: Switch = False
    """Print a JSON list, for programs."""


def doctor(settings: Doctor) -> int:
    """Check this machine: packages, devices, environments, terminal, disk and memory.

    Each line is ok, missing or a note; below what is missing is the command that
    fixes it. Nothing is downloaded and no network connection is opened. The exit code is
    0 if Forethought can be used, though an environment may need more; else 1.

    Examples:
      forethought doctor
      forethought doctor --json
    """
    findings = [finding for check in DOCTOR_CHECKS for finding in check()]
    if settings.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    return 1 if any(finding.is_fatal for finding in findings) else 0


def _print(findings: list[Finding]) -> None:
    rows = [(finding.status, finding.name, finding.message) for finding in findings]
    for line, finding in zip(align(rows, left=True), findings, strict=True):
        print(_colored(line, finding.status))
        if finding.fix is not None:
            print(f"         -> {finding.fix}")
    fatal = [finding.name for finding in findings if finding.is_fatal]
    print(
        f"\nnot usable: {', '.join(fatal)}" if fatal else "\nusable: try `forethought quickstart`"
    )


def _colored(line: str, status: Literal["ok", "missing", "note"]) -> str:
    if not sys.stdout.isatty():
        return line
    color = {"ok": 32, "missing": 31, "note": 33}[status]
    return f"\x1b[{color}m{status}\x1b[0m{line[len(status) :]}"
