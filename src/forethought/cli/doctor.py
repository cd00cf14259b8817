"""`forethought doctor`."""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Literal

from forethought.cli.examinations import EXAMINATIONS, Finding
from forethought.cli.flags import Switch
from forethought.cli.tables import align


@dataclass(frozen=True)
class Doctor:
    """How the findings are printed."""

    json: Switch = False
    """Print a JSON list, for programs."""


def doctor(settings: Doctor) -> int:
    """Check this machine: packages, devices, worlds, terminal, disk and memory.

    Each line is ok, missing or a note; beneath what is missing stands the command that
    mends it. Nothing is downloaded and no network connection is opened. The exit code is
    0 if Forethought can be used, though a world may need more; else 1.

    Examples:
      forethought doctor
      forethought doctor --json
    """
    findings = [finding for examine in EXAMINATIONS for finding in examine()]
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
