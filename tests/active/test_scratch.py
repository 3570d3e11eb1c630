"""Scratch files: what is put there comes back, and where there is no room the process lives."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from sketchridge.active.scratch import Scratch


@pytest.fixture(params=["fallocate", "none", "unsupported"])
def platform(request, monkeypatch):
    """With posix_fallocate, without it, and on a file system that cannot do it."""
    if request.param == "none":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    if request.param == "unsupported":

        def refuse(*arguments):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    return request.param


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (1000, 300), (4, 0), (0, 4)])
def test_what_is_put_there_comes_back(platform, shape):
    rng = np.random.default_rng(0)
    matrices = [rng.standard_normal(shape) for _ in range(3)]
    scratch = Scratch(sum(A.nbytes for A in matrices))
    places = [scratch.put(A) for A in matrices]
    for place, A in reversed(list(zip(places, matrices, strict=True))):
        np.testing.assert_array_equal(scratch.get(place), A)


@pytest.mark.parametrize("make", [np.asfortranarray, lambda A: A[::2], lambda A: A.astype("f4")])
def test_any_layout_is_kept(make):
    A = make(np.arange(24.0).reshape(6, 4))
    scratch = Scratch(8 * A.size)
    np.testing.assert_array_equal(scratch.get(scratch.put(A)), A)


def test_the_space_is_really_taken(platform):
    size = 3 * 2**20 + 5
    scratch = Scratch(size)
    status = os.fstat(scratch._file.fileno())
    assert status.st_size == size
    assert status.st_blocks * 512 >= size


def test_more_than_was_allocated_is_refused():
    scratch = Scratch(80)
    scratch.put(np.zeros((1, 10)))
    with pytest.raises(ValueError, match="8 bytes more than the 80"):
        scratch.put(np.zeros((1, 1)))


def test_the_file_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = Scratch(2**20)
    scratch.put(np.ones((10, 10)))
    assert not list(tmp_path.iterdir())


LIMITED = """
import os, resource, sys
if sys.argv[1] == "none":
    del os.posix_fallocate
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
from sketchridge.active.scratch import Scratch
try:
    Scratch(2**21)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("platform", ["fallocate", "none"])
def test_where_there_is_no_room_the_process_lives_and_says_so(platform):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, platform], capture_output=True, text=True, check=True
    )
    assert "take 2,097,152 bytes (2 MiB), which the temporary folder" in done.stdout
    assert "set TMPDIR to a folder with more room" in done.stdout
