"""The pre-commit hook and the GitHub Action, run as their users run them: in a scratch repository, in a shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted import plant

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
TENSOR = '{"DataType": "FLOAT32", "Sizes": [6, 2]}'
DESC = f'{{"InputTensor": {TENSOR}, "OutputCount": 0, "OutputTensors": [], "Axis": 0}}'
BAD = f'{{"Type": "SPLIT", "Desc": {DESC}}}'

pytestmark = pytest.mark.slow


def run(*command, **options):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=900, check=False, **options
    )


@pytest.fixture
def project(tmp_path):
    """A repository of a user's, with a model that is right and one that is wrong."""
    pytest.importorskip("onnx")
    from tests.models import ints, model, node, value

    folder = tmp_path / "project"
    folder.mkdir()
    for name, lengths in (("right", (2, 4)), ("wrong", (2, 3))):
        cut = node("Split", ["x", "lengths"], ["y0", "y1"], name="cut", axis=0)
        made = model([cut], [value("x", (6, 2))], ["y0", "y1"], 13, [ints("lengths", *lengths)])
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
    (folder / "bad.json").write_text(BAD)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder)
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Models")):
        assert run(*git, *command).returncode == 0
    return folder


def test_the_hook(project, tmp_path):
    pytest.importorskip("pre_commit")
    # As a hook's repository is: a clone, without what is not committed. Changes to the hook itself are tried, too.
    source = tmp_path / "source"
    assert run("git", "clone", "-q", ROOT, source).returncode == 0
    (source / ".pre-commit-hooks.yaml").write_text((ROOT / ".pre-commit-hooks.yaml").read_text())
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", source)
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "The hook")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    said = plant(project)  # the hook imports nothing from there
    command = (sys.executable, "-I", "-m", "pre_commit", "try-repo", source, "dmlsplit", "--files")
    right = run(*command, "right.onnx", cwd=project, env=environment)
    assert right.returncode == 0, right.stdout + right.stderr
    assert "Passed" in right.stdout
    wrong = run(*command, "right.onnx", "wrong.onnx", "bad.json", cwd=project, env=environment)
    assert wrong.returncode == 1
    assert "onnx/" in wrong.stdout
    assert "bad.json" not in wrong.stdout  # not a kind of file that is known to hold operators
    assert not said.exists(), said.read_text()


def test_the_hook_takes_no_file_for_an_option(project):
    """pre-commit puts the names behind `args`, which are the hook's own or those of a user who follows the page."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (shown,) = re.findall(r"hooks: (\[\{id: dmlsplit, .*\}\])", (ROOT / "docs" / "howto-ci.md").read_text())
    (project / "wrong.onnx").rename(project / "-oright.onnx")
    before = (project / "right.onnx").read_bytes()
    for args in (hook["args"], yaml.safe_load(shown)[0]["args"]):
        done = run(sys.executable, *hook["entry"].split()[1:], *args, "-oright.onnx", cwd=project)
        assert done.returncode == 1
        assert done.stdout.startswith("-oright.onnx: "), done.stdout + done.stderr
        assert (project / "right.onnx").read_bytes() == before


class Action:
    """action.yml, run as a runner does: each step by its shell, with the inputs put in place."""

    def __init__(self, temporary):
        self.steps = yaml.safe_load((ROOT / "action.yml").read_text())
        self.defaults = {name: str(value.get("default", "")) for name, value in self.steps["inputs"].items()}
        self.temporary = temporary

    def run(self, folder, *, variables=(), **inputs):
        """The exit status, what was said, and the outputs of the last step, in a checkout that `folder` is."""
        known = {f"inputs.{name}": text for name, text in {**self.defaults, **inputs}.items()}
        known["github.action_path"] = str(ROOT)
        said = ""
        for step in self.steps["runs"]["steps"]:
            assert step["shell"] == "bash"
            output = self.temporary / "output"
            output.write_text("")
            env = {**os.environ, **dict(variables), "RUNNER_TEMP": str(self.temporary), "GITHUB_OUTPUT": str(output)}
            env |= {name: self.expand(value, known) for name, value in step.get("env", {}).items()}
            shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
            done = run(*shell, cwd=folder, env=env)
            said += done.stdout + done.stderr
            outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
            known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in outputs.items()}
            if done.returncode:
                break
        return done.returncode, said, outputs

    def expand(self, value, known):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)


@pytest.fixture(scope="module")
def action(tmp_path_factory):
    return Action(tmp_path_factory.mktemp("action"))


def test_the_action(action, project):
    status, said, output = action.run(project, files="right.onnx", args="--feature-level 4_1")
    assert (status, output) == (0, {"status": "0"}), said
    status, said, output = action.run(project, files="*.onnx bad.json", args="--feature-level 4_1")
    assert (status, output) == (1, {"status": "1"})
    assert "::error file=bad.json,line=1," in said
    assert "::error file=wrong.onnx," in said
    status, said, output = action.run(project, files="no;touch${IFS}hacked", format="jsonl", output="out.jsonl")
    assert (status, output) == (2, {"status": "2"})
    assert not (project / "hacked").exists()
    status, said, output = action.run(project, files="right.onnx", format="junit", output="report.xml")
    assert status == 0
    assert (project / "report.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "path", [None, f".{os.pathsep}", pytest.param("{project}", marks=pytest.mark.thorough)], ids=repr
)
def test_the_action_imports_nothing_from_the_checkout(action, project, path):
    """Nor where the workflow has a PYTHONPATH that leads there: an empty folder in it does, too."""
    said = plant(project)
    variables = {} if path is None else {"PYTHONPATH": path.format(project=project)}
    inputs = {"files": "right.onnx bad.json", "args": "--jobs 2 --feature-level 4_1"}
    status, text, outputs = action.run(project, variables=variables, **inputs)
    assert (status, outputs) == (1, {"status": "1"}), text
    assert not said.exists(), said.read_text()
