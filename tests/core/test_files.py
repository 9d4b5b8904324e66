"""Files that are whole, or not there."""

import errno
import os
import stat

import pytest

from bisvm.core.files import whole_file


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def write(path, text):
    with whole_file(path) as file:
        file.write(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, umask):
    write(tmp_path / "new", b"1")
    assert mode(tmp_path / "new") == 0o666 & ~umask


def test_an_old_file_keeps_its_mode(tmp_path, umask):
    (tmp_path / "old").write_bytes(b"0")
    (tmp_path / "old").chmod(0o604)
    write(tmp_path / "old", b"1")
    assert mode(tmp_path / "old") == 0o604
    assert (tmp_path / "old").read_bytes() == b"1"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to(os.path.join("folder", "target"))
    for text in (b"new", b"replaced"):
        write(link, text)
        assert link.is_symlink() and target.read_bytes() == text
    assert [one.name for one in target.parent.iterdir()] == ["target"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_what_goes_wrong_leaves_the_old_file_and_no_part(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(type(error)) as caught, whole_file(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write(path, b"")
    assert caught.value.filename == str(path)


def test_a_device_is_written_to():
    write(os.devnull, b"1")
    assert not os.path.isfile(os.devnull)
