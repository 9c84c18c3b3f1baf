"""benchmarks/against.py: what it makes of times, and what it is asked for. No time is judged here."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dmlsplit

FOLDER = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(FOLDER))

import against  # noqa: E402
from suite import builds, lockstep  # noqa: E402
from suite.cases import CASES  # noqa: E402
from suite.comparison import Turns, Verdict, judge, quantile  # noqa: E402
from suite.layouts import LEAST_MAPPED, allocate  # noqa: E402
from suite.lockstep import AGAIN, A, B, Lockstep, Refused, Setting, calls_of_a_turn, of_copy  # noqa: E402

IN_GIT = (FOLDER.parent / ".git").exists()


def rounds_of(ratios, noises):
    """Rounds of one turn each."""
    return [Turns([1.0], [noise], [ratio]) for ratio, noise in zip(ratios, noises, strict=True)]


class TestJudging:
    @pytest.mark.parametrize(
        ("ratios", "noises", "verdict"),
        [
            ([1.10, 1.11, 1.12], [1.01, 0.99, 1.02], Verdict.SLOWER),
            ([0.90, 0.91, 0.92], [1.01, 0.99, 1.02], Verdict.FASTER),
            ([1.10, 1.11, 1.12], [1.20, 1.00, 1.00], Verdict.ALIKE),  # A differs from itself by as much
            ([1.10, 1.11, 1.12], [0.80, 1.00, 1.00], Verdict.ALIKE),  # in either direction
            ([0.90, 0.91, 0.92], [0.80, 1.00, 1.00], Verdict.ALIKE),
            ([0.80, 1.11, 1.12], [1.01, 0.99, 1.02], Verdict.ALIKE),  # the rounds disagree
            ([1.20, 0.91, 0.90], [1.01, 0.99, 1.02], Verdict.ALIKE),
            ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], Verdict.ALIKE),
            ([1.015, 1.015, 1.015], [1.0, 1.0, 1.0], Verdict.ALIKE),  # few rounds agree by chance
            ([1.025, 1.025, 1.025], [1.0, 1.0, 1.0], Verdict.SLOWER),
            ([1.5, 1.5], [1.0, 1.0], Verdict.UNKNOWN),
            ([1.10] * 20 + [0.50], [1.0] * 20 + [3.0], Verdict.SLOWER),  # one round in 21 was disturbed
        ],
    )
    def test_verdict(self, ratios, noises, verdict):
        assert judge(rounds_of(ratios, noises)).verdict == verdict

    def test_figures(self):
        found = judge(rounds_of([1.3, 1.1, 1.2], [1.0, 0.5, 1.0]))
        assert (found.ratio, found.low, found.high) == pytest.approx((1.2, 1.12, 1.28))
        assert found.noise == pytest.approx(1.8)

    def test_order_of_rounds_is_without_meaning(self):
        rounds = rounds_of([1.3, 1.1, 1.2, 0.9, 1.0], [1.0, 0.5, 1.0, 1.2, 1.1])
        shuffled = random.Random(1).sample(rounds, len(rounds))
        assert judge(shuffled) == judge(rounds)

    def test_sides_in_each_others_place(self):
        """B/A of 1.25 is A/B of 0.8."""
        forth, back = judge(rounds_of([1.25] * 3, [1.1] * 3)), judge(rounds_of([0.8] * 3, [1 / 1.1] * 3))
        assert (forth.verdict, back.verdict) == (Verdict.SLOWER, Verdict.FASTER)
        assert (forth.ratio, forth.noise) == pytest.approx((1 / back.ratio, back.noise))

    def test_what_slows_all_sides_in_a_turn_cancels_out(self):
        factors = [1.0, 7.0, 1.0, 3.0, 50.0]
        slowed = Turns([2 * f for f in factors], [2 * f for f in factors], [3 * f for f in factors])
        assert slowed.ratios() == (1.5, 1.0)

    @pytest.mark.parametrize(("share", "value"), [(0, 1), (0.25, 2), (0.5, 3), (0.875, 4.5), (1, 5)])
    def test_quantile(self, share, value):
        assert quantile([5, 3, 1, 4, 2], share) == value

    def test_quantile_of_one(self):
        assert quantile([4.0], 0.9) == 4.0


class TestPairing:
    TIMES = {(A, "case"): [10.0, 12.0], (AGAIN, "case"): [10.0, 12.0], (B, "case"): [20.0, 24.0]}

    def test_of_commits(self):
        times = self.TIMES | {(A, "copy"): [5.0, 5.0]}
        assert against.turns_of(times) == Turns([10, 12], [10, 12], [20, 24])
        assert (of_copy(times, A), of_copy(times, B)) == (2.2, 4.4)

    def test_beside_own_copies(self):
        """A profile that costs a copy twice as much may cost a case twice as much."""
        times = self.TIMES | {(A, "copy"): [5.0, 6.0], (AGAIN, "copy"): [5.0, 6.0], (B, "copy"): [10.0, 12.0]}
        assert against.turns_of(times).ratios() == (1.0, 1.0)
        assert of_copy(times, B) == 2.0

    def test_all_sides_make_as_many_calls_in_a_turn(self):
        estimates = {(A, "case"): 1000.0, (AGAIN, "case"): 2000.0, (B, "case"): 500.0, (A, "copy"): 1e9}
        assert {calls_of_a_turn((side, "case"), estimates) for side in (A, AGAIN, B)} == {2000}
        assert calls_of_a_turn((A, "copy"), estimates) == 1

    def test_summary(self):
        found = {name: rounds_of([ratio] * 3, [1.0] * 3) for name, ratio in (("x", 1.5), ("y", 3.0), ("z", 0.5))}
        lines = against.summary({name: judge(rounds) for name, rounds in found.items()}, list(found.values()))
        assert lines == [
            "3 cases, geometric mean of B/A 1.310, of A/A 1.000",
            "2 slower beyond noise: y 3.00, x 1.50",
            "1 faster beyond noise: z 0.50",
        ]


class TestArguments:
    @pytest.mark.parametrize(
        "words",
        [
            [],
            ["HEAD", "--rounds", "0"],
            ["HEAD", "--rounds", "x"],
            ["HEAD", "--seconds", "0"],
            ["HEAD", "--seconds", "nan"],
            ["HEAD", "--seconds", "inf"],
            ["HEAD", "--isa", "sse9"],
            ["HEAD", "--clock", "sun"],
            ["HEAD", "HEAD"],
        ],
        ids=" ".join,
    )
    def test_usage(self, words, capsys):
        with pytest.raises(SystemExit) as ended:
            against.main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err

    @pytest.mark.skipif(not IN_GIT, reason="no repository")
    @pytest.mark.parametrize(
        "words",
        [["no-such-commit"], ["--upload-pack=x"], ["HEAD", "--profile", "no-such-profile"], ["HEAD", "--cases", "zz"]],
    )
    def test_one_line_says_what_is_not_there(self, words, capsys):
        if words[0].startswith("--upload"):
            words = ["--", *words]
        assert against.main(words) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert words[-1] in said.err
        assert said.err.count("\n") == 1

    def test_cases(self):
        found, too_large = against.chosen_cases("h1,join-h*,i?")
        assert [case.name for case in found] == ["h1", *(c.name for c in CASES if c.name.startswith("join-h"))]
        assert [case.name for case in too_large] == ["i1", "i2"]

    def test_profile_of_a_name(self):
        assert against.profile_named("intel")["fetch"] == "pages"

    def test_profile_of_a_file(self, tmp_path):
        path = tmp_path / "profile.json"
        path.write_text(json.dumps({"claim": 4096, "fetch": "lines"}))
        assert against.profile_named(str(path)) == {"claim": 4096, "fetch": "lines"}

    @pytest.mark.parametrize(
        "text", ["", "[]", "1", '{"clam": 1}', '{"claim": "1"}', '{"claim": true}', '{"fetch": 1}']
    )
    def test_no_profile(self, tmp_path, text):
        path = tmp_path / "profile.json"
        path.write_text(text)
        with pytest.raises(Refused, match=r"profile\.json"):
            against.profile_named(str(path))


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A commit with one file, which is then changed; another file is new, and a third one ignored."""

    def git(*words):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "file").write_text("old")
    git("add", "--all")
    git("commit", "-q", "-m", "first")
    for name in ("file", "new", "ignored"):
        (tmp_path / name).write_text("now")
    monkeypatch.setattr(builds, "ROOT", tmp_path)
    return git


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
class TestTrees:
    def test_checkout_has_changes_and_new_files(self, repository):
        tree = builds.tree_of_checkout()
        assert repository("ls-tree", "--name-only", tree).split() == [".gitignore", "file", "new"]
        assert repository("show", f"{tree}:file") == "now"

    def test_checkout_leaves_the_index_as_it_is(self, repository):
        builds.tree_of_checkout()
        assert repository("status", "--porcelain") == " M file\n?? new\n"

    def test_commit(self, repository):
        tree = builds.tree_of("HEAD")
        assert repository("show", f"{tree}:file") == "old"
        assert tree != builds.tree_of_checkout()

    @pytest.mark.usefixtures("repository")
    @pytest.mark.parametrize("name", ["no-such", "", "--all", "HEAD:file"])
    def test_unknown_commit(self, name):
        with pytest.raises(builds.NotBuilt, match="no commit"):
            builds.tree_of(name)

    def test_build_that_is_there_is_used(self, tmp_path):
        (tmp_path / "0123").mkdir()
        assert builds.installed("0123", tmp_path) == tmp_path / "0123"


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux says which addresses are the heap")
def test_large_buffers_are_mapped_whatever_was_freed():
    np.empty(31 << 20, np.uint8)  # from here on, the C library would take blocks of less from its heap
    heap = next(line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines() if "[heap]" in line)
    begin, end = (int(address, 16) for address in heap.split("-"))
    buffers = [allocate(size) for size in (LEAST_MAPPED, 1 << 20, 8 << 20)]
    assert not any(begin <= buffer.ctypes.data < end + (64 << 20) for buffer in buffers)
    assert all(buffer.flags.writeable and buffer.ctypes.data % 64 == 0 for buffer in buffers)


def test_detection_is_held_to_a_variable():
    source = (FOLDER.parent / "csrc" / "dms_cpu.c").read_text(encoding="utf-8")
    held = builds.with_forced_isa(source)
    assert "value = (detect_isa() & forced_isa()) | DETECTED;" in held
    assert held.count("forced_isa()") == source.count("detect_isa()") > 0


@pytest.mark.parametrize("call", ["detect()", "detect_isa()"])
def test_detection_of_older_commits_is_held_too(call):
    assert f"value = ({call} & forced_isa()) | X;" in builds.with_forced_isa(f"value = {call} | X;")


class TestLockstep:
    """Three processes of the package that is under test."""

    SETTING = Setting("this one", Path(dmlsplit.__file__).parents[1])

    def sides(self, own_copies):
        return Lockstep(dict.fromkeys((A, AGAIN, B), self.SETTING), own_copies, "cpu", 0)

    @pytest.mark.parametrize("own_copies", [False, True])
    def test_all_jobs_have_as_many_turns(self, own_copies):
        case = next(case for case in CASES if case.name == "f2")
        with self.sides(own_copies) as sides:
            kernels, times = sides.kernels_and_times(case, 0.001, check=True)
        copies = {(side, "copy") for side in ((A, AGAIN, B) if own_copies else (A,))}
        assert times.keys() == {(A, "case"), (AGAIN, "case"), (B, "case")} | copies
        assert len({len(each) for each in times.values()}) == 1
        assert kernels[A] == kernels[B] != ""

    def test_each_round_has_an_order_of_its_own(self, monkeypatch):
        """Who takes its pages first would otherwise gain or lose by them in all rounds alike."""
        asked = []

        class Side:
            def __init__(self, setting, *_):
                self.name = setting.name

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def ask(self, **request):
                asked.append(self.name)
                return {"kernels": "scalar", "times": {}}

        monkeypatch.setattr(lockstep, "Process", Side)
        settings = {side: Setting(side, self.SETTING.package) for side in (A, AGAIN, B)}
        for number in range(20):
            with Lockstep(settings, False, "cpu", number) as sides:
                monkeypatch.setattr(sides, "_turns", lambda *_: {})
                sides.kernels_and_times(CASES[0], 0, check=False)
        assert {asked[i] for i in range(0, len(asked), 3)} == {A, AGAIN, B}

    def test_what_is_not_held_to_an_instruction_set_is_refused(self):
        """forced_isa.h is in builds for a comparison only."""
        setting = Setting("this one", self.SETTING.package, isa="any" if _widest() != "any" else "ssse3")
        with pytest.raises(Refused, match=r"this one: .* is asked for"):
            Lockstep({A: setting}, False, "cpu", 0)

    def test_modules_of_another_installation_are_refused(self, tmp_path):
        """The package that is measured is the one that was named."""
        with pytest.raises(Refused, match="which is not in"):
            Lockstep({A: Setting("A", tmp_path)}, False, "cpu", 0)

    def test_modules_that_a_package_lacks_are_not_looked_for_elsewhere(self, tmp_path):
        """A commit has dmlsplit._native, the checkout dmlsplit.native: an editable installation has both names."""
        (tmp_path / "dmlsplit").mkdir()
        (tmp_path / "dmlsplit" / "__init__.py").write_text("")
        (tmp_path / "dmlsplit" / "_native.py").write_text("import os\nos._exit(7)")
        with pytest.raises(Refused, match="its process ended with status 7"):
            Lockstep({A: Setting("A", tmp_path)}, False, "cpu", 0)

    def test_a_process_that_ends(self, tmp_path):
        (tmp_path / "dmlsplit").mkdir()
        (tmp_path / "dmlsplit" / "__init__.py").write_text("raise SystemExit(3)")
        with pytest.raises(Refused, match="its process ended with status 3"):
            Lockstep({A: Setting("A", tmp_path)}, False, "cpu", 0)


def _widest():
    from suite.ours import Ours

    return Ours().widest_isa
