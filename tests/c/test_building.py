"""What is said about compilers and runners that are not there."""

import pytest
from building import CC, MODES, Failure, Mode, missing_parts, require_parts  # beside this file

NO_HEADERS = Mode(["-nostdinc"], CC, packages="libc6-dev")


def test_nothing_is_missing_where_programs_are_built():
    assert missing_parts(MODES["plain"]) == []


@pytest.mark.parametrize(
    ("mode", "named"),
    [
        (Mode([], ["no-such-compiler"]), "no-such-compiler"),
        (Mode([], CC, ["no-such-runner"]), "no-such-runner"),
        (NO_HEADERS, "headers or libraries"),
    ],
)
def test_a_part_that_is_missing_is_named(mode, named):
    (missing,) = missing_parts(mode)
    assert named in missing


def test_a_compiler_without_headers_is_reported_with_their_packages():
    with pytest.raises(Failure, match="apt-get install libc6-dev"):
        require_parts(NO_HEADERS)
