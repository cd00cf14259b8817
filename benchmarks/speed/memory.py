"""The most memory that was held while something ran."""

import ctypes
import gc
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")

MIB = 2**20


@dataclass(frozen=True)
class Peak:
    """High-water marks of this process."""

    resident_mib: float | None
    """Main memory, with all that was there before; None where the system does not tell."""
    gpu_mib: float | None
    """Tensors on the GPU, likewise; None without one."""


def with_peak(work: Callable[[], T]) -> tuple[T, Peak]:
    """What the work returns, and the most memory that was held meanwhile.

    What the process no longer uses is given back to the system first, lest it be counted
    for whoever comes next.
    """
    gc.collect()
    _give_back()
    can_tell = _reset_high_water()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    result = work()
    resident = high_water_mib(Path("/proc/self/status").read_text()) if can_tell else None
    gpu = torch.cuda.max_memory_allocated() / MIB if torch.cuda.is_available() else None
    return result, Peak(resident, gpu)


def high_water_mib(status: str) -> float | None:
    """Reads `VmHWM` of Linux's /proc/self/status, which is in KiB."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return None if found is None else int(found[1]) / 1024


def highest(peaks: Iterable[Peak | None]) -> Peak | None:
    """The highest mark of each kind; None where none was measured."""
    known = [peak for peak in peaks if peak is not None]
    if not known:
        return None
    resident = [p.resident_mib for p in known if p.resident_mib is not None]
    gpu = [p.gpu_mib for p in known if p.gpu_mib is not None]
    return Peak(max(resident, default=None), max(gpu, default=None))


def _reset_high_water() -> bool:
    """Whether the system let us: Linux does, others have no such file."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _give_back() -> None:
    """glibc keeps what was freed; other C libraries have no such function."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return
