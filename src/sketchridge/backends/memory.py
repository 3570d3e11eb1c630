"""How much memory there is, and a sentence in place of a killed process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["available", "check"]

_GROUPS = Path("/sys/fs/cgroup")  # control groups: containers, services, jobs of a scheduler
_OWN = Path("/proc/self/cgroup")  # lines number:controllers:path, of version 2 without controllers
_LIMITS = (  # limit and use, with control groups of version 2 or 1
    ("memory.max", "memory.current"),
    ("memory.high", "memory.current"),  # beyond it a process is slowed down until it stands still
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available() -> float:
    """Bytes that can still be taken on this machine, and in every control group around this
    process; infinite if unknown."""
    groups = (_of_a_group(group / a, group / b) for group in _groups() for a, b in _LIMITS)
    return min([_of_the_machine(), *groups])


def check(needed: float, what: str, remedy: str, *, free: float | None = None) -> None:
    """Raise MemoryError with the bytes needed and available, before they are taken."""
    free = available() if free is None else free
    if needed > free:
        raise MemoryError(
            f"{what} needs {int(needed):,} bytes ({needed / 2**30:.1f} GiB), but {int(free):,} "
            f"({free / 2**30:.1f} GiB) are available: {remedy}."
        )


def _of_the_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = [line for line in lines if line.startswith("MemAvailable")]
        return int(found[0].split()[1]) * 1024.0
    except (OSError, IndexError, ValueError):
        return _of_windows() if sys.platform == "win32" else _of_sysconf()


def _of_sysconf() -> float:
    """Free pages, or all pages where only those are told."""
    names = getattr(os, "sysconf_names", {})
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if name in names:
            return float(os.sysconf(name)) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def _of_windows() -> float:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("free", ctypes.c_ulonglong),
            ("rest", ctypes.c_ulonglong * 5),
        )

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return float(status.free)


def _groups() -> set[Path]:
    """The folders of this process's group and of those around it. A container may see its own group
    as the root, whatever the path of it is called outside."""
    found = {_GROUPS, _GROUPS / "memory"}
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        group = _GROUPS / ("memory" if controllers else "") / path.lstrip("/")
        found |= {each for each in (group, *group.parents) if _GROUPS in each.parents}
    return found


def _of_a_group(limit: Path, used: Path) -> float:
    try:
        left = float(limit.read_text()) - float(used.read_text())
    except (OSError, ValueError):  # no such group, or the limit "max"
        return float("inf")
    return left + _reclaimable(used.parent / "memory.stat")


def _reclaimable(stat: Path) -> float:
    """What a group's use counts of files that were read and are kept as long as there is room."""
    try:
        fields = dict(line.split() for line in stat.read_text().splitlines())
        return float(fields.get("total_inactive_file", fields.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0.0
