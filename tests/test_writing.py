"""Files that appear whole or not at all, as readable as any other that the user writes."""

from __future__ import annotations

import os
import stat

import pytest

from sketchridge.writing import put, write_text


def test_a_file_has_the_mode_that_others_get(tmp_path, monkeypatch):
    """The umask, which all threads share, is not touched: files of others would be open to all."""
    (tmp_path / "plain.txt").write_text("x")
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    write_text("x", tmp_path / "ours.txt")
    plain, ours = (stat.S_IMODE((tmp_path / f"{n}.txt").stat().st_mode) for n in ("plain", "ours"))
    assert ours == plain


@pytest.mark.parametrize("force", [False, True])
def test_what_fails_leaves_nothing(tmp_path, force):
    (tmp_path / "kept.txt").write_text("kept")

    def write(file):
        file.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match=r"kept.txt could not be written: the disk is full"):
        put(tmp_path / "kept.txt", write, force)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_what_came_in_the_meantime_is_not_overwritten(tmp_path):
    path = tmp_path / "new.txt"
    with pytest.raises(ValueError, match="has come into being in the meantime"):
        put(path, lambda file: path.write_text("theirs"), False)
    assert path.read_text() == "theirs"
    assert len(list(tmp_path.iterdir())) == 1
