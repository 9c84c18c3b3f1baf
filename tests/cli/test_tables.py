"""Tables that commands print: they fit their terminal, and a pipe gets every name whole."""

import pytest

from dmlsplit.library.catalogue import debug_layer, known_builds

from .conftest import on_terminal

TABLES = [
    ("levels",),
    ("levels", "--releases"),
    ("levels", "--runtimes"),
    ("support", "SPLIT"),
    ("library", "list"),
    ("conformance", "list"),
]


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("args", TABLES, ids=" ".join)
def test_tables_fit_a_terminal(tmp_path, args, columns):
    status, out = on_terminal(tmp_path, *args, COLUMNS=str(columns), NO_COLOR="1", XDG_CACHE_HOME="/c")
    assert status == 0
    assert len(out.splitlines()) > 5
    assert [line for line in out.splitlines() if len(line) > columns] == []


def test_a_pipe_gets_the_names_of_builds_and_the_hashes_of_suites_whole(cli):
    listed = cli("library", "list").out.splitlines()
    names = {build.name for build in known_builds() if build != debug_layer()}
    assert names <= {line.split()[0] for line in listed if line}
    hashes = [line.split()[2] for line in cli("conformance", "list").out.splitlines()[2:]]
    assert [len(each) for each in hashes] == [64] * 4
