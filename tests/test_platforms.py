"""Machines unlike ours: other operating systems, containers, few cores, no GPU, little memory."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from problems import X, assert_same_answers, makers, points, values, y

import sketchridge
from sketchridge import ExactKernelRidge, SketchedKernelRidge, backends
from sketchridge.backends import NumpyTiles, as_backend, memory
from sketchridge.backends.threads import default_workers

SOURCE = str(Path(sketchridge.__file__).parents[1])


def run(code: str, **environment: str) -> str:
    """What a program prints in a fresh interpreter."""
    given = {"PYTHONPATH": SOURCE, "PATH": os.environ["PATH"], **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=given
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# other operating systems

ELSEWHERE = """
import builtins, io, os, sys

for name in {missing}:
    if hasattr(os, name):
        delattr(os, name)
sys.modules["resource"] = None
open_file, stat = io.open, os.stat

def is_hidden(file):
    return isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith(("/proc", "/sys"))

def guarded(function):
    def call(file, *arguments, **options):
        if is_hidden(file):
            raise FileNotFoundError(2, "No such file or directory", file)
        return function(file, *arguments, **options)
    return call

builtins.open = io.open = guarded(open_file)
os.stat = guarded(stat)
"""
WORK = """
import numpy as np
from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
import sketchridge.active.pool

sketchridge.active.pool._MEMORY = 0  # so that sums are kept in a scratch file
rng = np.random.default_rng(0)
X = rng.random((2000, 3))
y = np.sin(3 * X[:, 0])
PLAIN = {"kernel": "gaussian", "bandwidth": "median"}
for model in (ExactKernelRidge(alpha=0.1, **PLAIN), SketchedKernelRidge(random_state=0, **PLAIN)):
    n = 300 if isinstance(model, ExactKernelRidge) else 2000
    mean, std = model.fit(X[:n], y[:n]).predict(X[:9], return_std=True)
    assert np.abs(mean - y[:9]).max() < 0.1 and (std > 0).all()
learner = ActiveLearner(SketchedKernelRidge(), X, batch_size=20, random_state=0)
for _ in range(3):
    ids = learner.ask()
    learner.tell(ids, y[ids])
assert len(learner.labeled_ids_) == 60
print("done")
"""
MISSING = {
    "macOS and Windows": ["sched_getaffinity", "posix_fallocate"],
    "nothing of POSIX": [
        "sched_getaffinity",
        "posix_fallocate",
        "sysconf",
        "sysconf_names",
        "register_at_fork",
        "fork",
    ],
}


@pytest.mark.parametrize("platform", MISSING)
def test_a_fit_and_a_campaign_work_elsewhere(platform):
    """Every fit failed on macOS and Windows."""
    assert run(ELSEWHERE.format(missing=MISSING[platform]) + WORK) == "done\n"


def test_the_memory_of_windows_is_asked_for(monkeypatch):
    def tell(reference):
        reference._obj.free = 3 * 2**30
        return 1

    kernel32 = SimpleNamespace(GlobalMemoryStatusEx=tell)
    monkeypatch.setattr("ctypes.windll", SimpleNamespace(kernel32=kernel32), raising=False)
    monkeypatch.setattr(memory.sys, "platform", "win32")
    monkeypatch.setattr(memory, "Path", no_file)
    monkeypatch.setattr(memory, "_LIMITS", ())
    assert memory.available() == 3 * 2**30


def test_the_memory_of_macos_is_asked_for(monkeypatch):
    """It tells the number of all pages, not that of free ones."""
    answers = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory.os, "sysconf_names", answers)
    monkeypatch.setattr(memory.os, "sysconf", answers.__getitem__)
    monkeypatch.setattr(memory, "Path", no_file)
    assert memory._of_the_machine() == 1000 * 4096


def test_memory_that_nobody_tells_is_infinite(monkeypatch):
    monkeypatch.delattr(memory.os, "sysconf_names")
    monkeypatch.setattr(memory, "Path", no_file)
    assert memory._of_the_machine() == float("inf")


def no_file(path):
    return Path("/nowhere") / Path(path).name


# containers

GIB = 2**30


NAMES = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """Control groups in a folder, in place of this machine's."""
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_OWN", tmp_path / "own")
    monkeypatch.setattr(memory, "_of_the_machine", lambda: 64.0 * GIB)

    def group(path: str, files: dict[str, object]) -> None:
        folder = tmp_path / "cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n")

    group.own = (tmp_path / "own").write_text
    return group


@pytest.fixture
def container(groups):
    """A container that sees its group as the root."""

    def make(version: int, limit: object, used: int, inactive: int = 0) -> None:
        field = "total_inactive_file" if version == 1 else "inactive_file"
        stat = f"anon 17\n{field} {inactive}\nslab 5"
        files = dict(zip(NAMES[version], (limit, used), strict=True)) | {"memory.stat": stat}
        groups("memory" if version == 1 else "", files)

    return make


@pytest.mark.parametrize("version", [1, 2])
def test_a_containers_limit_is_respected(container, version):
    container(version, 2 * GIB, GIB // 2)
    assert memory.available() == 1.5 * GIB


@pytest.mark.parametrize(("version", "limit"), [(2, "max"), (1, 2**63 - 4096)])
def test_a_container_without_a_limit_has_the_machines_memory(container, version, limit):
    container(version, limit, GIB)
    assert memory.available() == 64 * GIB


OWN = {  # as in a service of systemd, in a job of a scheduler, with both versions side by side
    2: "0::/user.slice/job\n",
    1: "9:name=systemd:/\n5:devices:/\n4:cpu,memory:/user.slice/job\n0::/other\n",
}


@pytest.mark.parametrize("version", OWN)
@pytest.mark.parametrize("level", ["user.slice/job", "user.slice", ""])
def test_the_least_limit_around_a_process_counts(groups, version, level):
    """Only the root was looked at, which has no limit outside of containers."""
    top = "memory" if version == 1 else ""
    unlimited = "max" if version == 2 else 2**63 - 4096
    for path in ("user.slice/job", "user.slice", "user.slice/job/inside", "other"):
        limit = GIB // 4 if path not in ("user.slice/job", "user.slice") else unlimited
        files = dict(zip(NAMES[version], (limit, GIB // 8), strict=True))
        groups(f"{top}/{path}".strip("/"), files)
    groups(f"{top}/{level}".strip("/"), dict(zip(NAMES[version], (3 * GIB, GIB), strict=True)))
    groups.own(OWN[version])
    assert memory.available() == 2 * GIB


def test_a_limit_beyond_which_a_process_is_slowed_down_counts(groups):
    groups("job", {"memory.max": 4 * GIB, "memory.high": 2 * GIB, "memory.current": GIB})
    groups.own("0::/job\n")
    assert memory.available() == GIB


def test_a_group_whose_path_is_that_of_outside_is_the_root(groups):
    """Docker without a namespace of its own for control groups."""
    groups("memory", dict(zip(NAMES[1], (2 * GIB, GIB), strict=True)))
    groups.own("4:memory:/docker/0123456789\n0::/../outside\n")
    assert memory.available() == GIB


@pytest.mark.parametrize("version", [1, 2])
def test_files_that_the_kernel_keeps_for_later_are_not_in_use(container, version):
    """memory.current counts the page cache, which fills every container that has read files."""
    container(version, 8 * GIB, 7.5 * GIB, inactive=7 * GIB)
    assert memory.available() == 7.5 * GIB


def test_a_fit_too_large_for_its_container_is_refused_with_numbers(container):
    container(2, GIB, GIB - 2**26)  # 64 MiB are left
    text = r"needs ([\d,]+) bytes \(\d+\.\d GiB\), but 67,108,864 \(0\.1 GiB\) are available: "
    A = np.random.default_rng(0).random((20_000, 2))
    with pytest.raises(MemoryError, match="ExactKernelRidge on 20,000 rows " + text + "use Sket"):
        ExactKernelRidge(alpha=1.0).fit(A, A[:, 0])
    model = SketchedKernelRidge(alpha=1.0, bandwidth=0.01, sketch_size=2048, random_state=0)
    with pytest.raises(MemoryError, match=text + "give a smaller sketch_size, or fewer rows"):
        model.fit(A, A[:, 0])
    assert not model.__sklearn_is_fitted__()


def test_a_message_of_memory_has_the_bytes_needed_and_available():
    text = (
        r"^Something needs 3,221,225,472 bytes \(3\.0 GiB\), but 1,073,741,824 \(1\.0 GiB\) are "
        r"available: take less\.$"
    )
    with pytest.raises(MemoryError, match=text):
        memory.check(3 * GIB, "Something", "take less", free=GIB)
    memory.check(GIB, "Something", "take less", free=GIB)


# cores


@pytest.fixture
def cores(monkeypatch):
    """A machine with 8 cores."""
    for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(
    ("asked", "workers"),
    [("1", 1), ("3", 3), ("99", 8), ("4,2,1", 4), ("0", 1), ("", 8), ("many", 8), ("-2", 8)],
)
def test_omp_num_threads_is_respected(asked, workers, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert default_workers() == NumpyTiles().workers == workers


@pytest.mark.parametrize("count", [1, 2])
def test_the_count_of_joblib_is_respected(count, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1" if count == 1 else str(os.cpu_count()))
    assert default_workers() == joblib.cpu_count()
    assert count > 1 or NumpyTiles().workers == 1


def test_a_fit_with_one_core_starts_no_thread():
    code = """
import threading
import numpy as np
from sketchridge import SketchedKernelRidge
started = []
begin = threading.Thread.start
def start(self):
    started.append(self.name)
    begin(self)
threading.Thread.start = start
X = np.random.default_rng(0).random((3000, 3))
model = SketchedKernelRidge("gaussian", bandwidth=0.5, alpha=1.0).fit(X, X[:, 0])
model.predict(X, return_std=True)
print(*{name.rpartition("_")[0] for name in started})
"""
    assert run(code, OMP_NUM_THREADS="1").split() in ([], ["sketchridge-blas"])


@makers
def test_a_number_of_threads_changes_nothing_beyond_rounding(make, monkeypatch):
    A = points(900)
    b = values(A)[:, 0]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one = make().fit(A, b)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 7)
    assert_same_answers(make().fit(A, b), one)


# GPUs

LARGE = """
import sys
from pathlib import Path
import numpy as np
from sketchridge import SketchedKernelRidge, backends

backends._DRIVER = Path("/nowhere")
X = np.random.default_rng(0).random((16_384, 2))
model = SketchedKernelRidge(alpha=1.0, bandwidth=0.5, sketch_size=16).fit(X, X[:, 0])
model.predict(X[:5], return_std=True)
print(model.backend_, "torch" in sys.modules)
"""


def test_looking_for_a_gpu_imports_nothing_where_there_is_no_driver():
    """Importing PyTorch takes seconds, and cannot be repeated after Ctrl-C."""
    assert run(LARGE, PATH="").split() == ["numpy", "False"]


@pytest.fixture
def fake_torch(monkeypatch, tmp_path):
    """A machine with a driver, and a PyTorch that finds a GPU or not."""

    def make(*, available: bool, driver: bool = True, installed: bool = True) -> list[str]:
        asked: list[str] = []

        def is_available():
            asked.append("torch")
            return available

        torch = SimpleNamespace(cuda=SimpleNamespace(is_available=is_available))
        (tmp_path / "version").touch()
        monkeypatch.setattr(backends, "_DRIVER", tmp_path / ("version" if driver else "none"))
        monkeypatch.setattr(backends.shutil, "which", lambda name: None)
        monkeypatch.setattr(backends, "find_spec", lambda name: torch if installed else None)
        load = backends.import_module
        fake = {"torch": torch}
        monkeypatch.setattr(
            backends, "import_module", lambda name: fake[name] if name in fake else load(name)
        )
        return asked

    return make


@pytest.mark.parametrize(
    ("machine", "n", "worth", "asked"),
    [
        ({"available": True}, 16_384, True, 1),
        ({"available": True}, 16_383, False, 0),
        ({"available": False}, 16_384, False, 1),
        ({"available": True, "driver": False}, 10**9, False, 0),
        ({"available": True, "installed": False}, 10**9, False, 0),
    ],
    ids=["a GPU", "few rows", "no GPU", "no driver", "no PyTorch"],
)
def test_a_gpu_is_looked_for_only_where_it_may_be(machine, n, worth, asked, fake_torch):
    calls = fake_torch(**machine)
    assert backends.worth_a_gpu(n) is worth
    assert len(calls) == asked
    if not worth:
        assert as_backend("auto", n).name == "numpy"


@pytest.mark.parametrize("name", ["torch", "triton"])
def test_a_backend_whose_library_is_missing_says_what_to_install(name, monkeypatch):
    def missing(module):
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(backends, "import_module", missing)
    with pytest.raises(ImportError, match=r"needs PyTorch.*pip install 'sketchridge\[gpu\]'"):
        SketchedKernelRidge(alpha=1.0, backend=name).fit(X, y)


# starting up

START = """
import time
start = time.perf_counter()
import {modules}
print(time.perf_counter() - start)
"""
PARTS = (
    "sklearn, sklearn.base, sklearn.utils.validation, scipy.linalg, scipy.stats, scipy.special, "
    "scipy.spatial.distance, joblib, threadpoolctl"
)


def test_importing_takes_little_more_than_what_it_is_made_of():
    """The least of three, in turns: the machine may be busy."""
    seconds: dict[str, list[float]] = {"sketchridge": [], PARTS: []}
    for modules in [*seconds] * 3:
        seconds[modules].append(float(run(START.format(modules=modules))))
    assert min(seconds["sketchridge"]) < 1.5 * min(seconds[PARTS])
