"""Files get their names when all of them are whole; else what was there before stays, and nothing else."""

import os
import stat
import sys
from contextlib import suppress

import pytest

from dmlsplit.system.atomic_files import atomic_files, same_file, write_file

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")


def tree(folder):
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def write(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


def test_names_come_at_the_end(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with atomic_files() as files:
        files.make_folder(str(tmp_path / "p" / "q"))
        for name in ("a", "b", os.path.join("p", "q", "c")):
            write(files.create(str(tmp_path / name)), name.encode())
        assert (tmp_path / "a").read_bytes() == b"old"
        assert not (tmp_path / "b").exists()
    assert {name: content for name, content in tree(tmp_path).items() if content is not None} == {
        name: name.encode() for name in ("a", "b", os.path.join("p", "q", "c"))
    }


CALLS = ["chmod", "mkdir", "rename", "replace", "lstat"]
NEW = {"a", "b", "c", "p", os.path.join("p", "q"), os.path.join("p", "q", "d")}


def create(folder, names, discarded=(), **options):
    with atomic_files(**options) as files:
        for name in discarded:
            files.discard(str(folder / name))
        for name in names:
            files.make_folder(os.path.dirname(folder / name))
            files.create(str(folder / name))


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failure_at_any_call_leaves_what_was_there(tmp_path, monkeypatch, error):
    """Of every call to the system in turn."""
    (tmp_path / "a").write_bytes(b"old a")
    (tmp_path / "c").write_bytes(b"old c")
    (tmp_path / "z").write_bytes(b"surplus")
    before = tree(tmp_path)
    calls = 0

    def failing(call, at):
        def counted(*args, **options):
            nonlocal calls
            calls += 1
            if calls == at:
                raise error
            return call(*args, **options)

        return counted

    at = 0
    while tree(tmp_path) == before:
        at, calls = at + 1, 0
        with monkeypatch.context() as patch, suppress(type(error)):
            for name in CALLS:
                patch.setattr(os, name, failing(getattr(os, name), at))
            patch.setattr("builtins.open", failing(open, at))
            create(tmp_path, ["a", "b", "c", os.path.join("p", "q", "d")], ["z"])
    assert set(tree(tmp_path)) == NEW
    assert at == calls + 1 > 20


def test_the_last_file_goes_first_and_comes_last(tmp_path, monkeypatch):
    """So that a process that is killed leaves it only beside all others, old or new."""
    for name in "abcz":
        (tmp_path / name).write_bytes(b"old")
    states = []

    def watched(call):
        def moving(*args):
            states.append({name: content for name, content in tree(tmp_path).items() if name in "abcz"})
            call(*args)

        return moving

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    create(tmp_path, "abc", ["z"])
    assert len(states) == 7
    old, new = dict.fromkeys("abcz", b"old"), dict.fromkeys("abc", b"")
    assert all(state in (old, new) for state in [*states, tree(tmp_path)] if "c" in state)


def test_new_names_are_taken_back(tmp_path, monkeypatch):
    """The second of three cannot be moved: the first is gone again, though nothing was there before."""
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: 1 / 0 if new.endswith("b") else replace(old, new))
    with pytest.raises(ZeroDivisionError):
        create(tmp_path, "abc", replace=False)
    assert tree(tmp_path) == {}


def test_somebody_was_faster(tmp_path):
    block = atomic_files(replace=False)
    files = block.__enter__()
    for name in "abc":
        files.create(str(tmp_path / name))
    (tmp_path / "b").write_bytes(b"theirs")
    with pytest.raises(FileExistsError) as info:
        block.__exit__(None, None, None)
    assert tree(tmp_path) == {"b": b"theirs"}
    assert info.value.filename == str(tmp_path / "b")


def test_folders_that_others_use_stay(tmp_path):
    with suppress(ZeroDivisionError), atomic_files() as files:
        files.make_folder(str(tmp_path / "p" / "q" / "r"))
        (tmp_path / "p" / "theirs").write_bytes(b"")
        raise ZeroDivisionError
    assert tree(tmp_path) == {"p": None, os.path.join("p", "theirs"): b""}


@posix
@pytest.mark.parametrize("made", ["gone", "there/below/gone"])
def test_the_folder_that_a_link_leads_to_is_made(tmp_path, monkeypatch, made):
    monkeypatch.chdir(tmp_path)
    os.mkdir("there")
    os.symlink(made, "link")
    os.symlink("link", "again")
    with suppress(ZeroDivisionError), atomic_files() as files:
        files.make_folder("again")
        assert os.path.isdir(made)
        raise ZeroDivisionError
    assert sorted(os.listdir()) == ["again", "link", "there"]
    with atomic_files() as files:
        files.make_folder(os.path.join("again", "in"))
    assert os.path.isdir(os.path.join(made, "in"))


@posix
@pytest.mark.parametrize("folder", ["file", "to file", "one", "file/in"])
def test_no_folder_is_made_of_a_file_or_a_loop(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    for name, target in (("to file", "file"), ("one", "two"), ("two", "one")):
        os.symlink(target, name)
    with pytest.raises(NotADirectoryError), atomic_files() as files:
        files.make_folder(folder)
    assert sorted(os.listdir()) == ["file", "one", "to file", "two"]


def test_a_block_that_is_never_left_leaves_nothing(tmp_path):
    """What a signal does that comes when the block is about to end."""
    block = atomic_files()
    files = block.__enter__()
    files.create(str(tmp_path / "a"))
    del block, files
    assert tree(tmp_path) == {}


@posix
def test_permissions_are_the_old_ones_from_the_start(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o400)
    with atomic_files() as files:
        temporary = files.create(str(tmp_path / "a"))
        assert stat.S_IMODE(os.stat(temporary).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o400


@posix
@pytest.mark.parametrize("make", ["mkfifo", "mkdir"])
def test_only_files_are_replaced(tmp_path, make):
    getattr(os, make)(tmp_path / "a")
    with pytest.raises(OSError, match=r"Is a directory|is not a regular file"):
        write_file(str(tmp_path / "a"), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_longest_name(tmp_path):
    name = "n" * 255 if sys.platform != "win32" else "n" * 100
    write_file(str(tmp_path / name), b"new")
    assert tree(tmp_path) == {name: b"new"}


def test_write_file_leaves_nothing(tmp_path):
    class Stop(BaseException):
        pass

    class Part:
        def __buffer__(self, flags):
            raise Stop

    with pytest.raises((Stop, TypeError)):  # TypeError: before Python 3.12 it is no buffer
        write_file(str(tmp_path / "p" / "q" / "x.bin"), b"begun", Part())
    assert tree(tmp_path) == {}


class TestSameFile:
    def test_names_of_a_file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a").write_bytes(b"")
        (tmp_path / "b").write_bytes(b"")
        os.link("a", "hard")
        os.symlink("a", "soft")
        assert all(same_file("a", name) for name in ("a", "./a", str(tmp_path / "a"), "hard", "soft"))
        assert not same_file("a", "b")
        assert not same_file("a", "none")

    def test_names_of_a_file_that_is_not_there_yet(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        os.symlink("new", "soft")
        os.symlink(".", "here")
        assert all(same_file("new", name) for name in ("./new", str(tmp_path / "new"), "soft", "here/new"))
        assert not same_file("new", "other")


def test_a_way_through_a_folder_that_is_not_there(tmp_path):
    """Making the folder first makes it the same file."""
    write(tmp_path / "a", b"")
    assert same_file(str(tmp_path / "none" / ".." / "a"), str(tmp_path / "a"))
    assert not same_file(str(tmp_path / "none" / ".." / "b"), str(tmp_path / "a"))
