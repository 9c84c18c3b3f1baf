"""Every block of the README and of docs/ runs: the blocks of a page in their order, in one folder."""

import functools
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import dmlsplit as dml
from dmlsplit.cli import cli, main
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.fetching import is_added

ROOT = Path(__file__).parents[1]
BUILDS_THE_CORE = "docs/howto-c.md"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
RULES = [page for page in PAGES if page.relative_to(ROOT).as_posix().startswith(("docs/rules/", "docs/rules.md"))]
"""A test of the registry judges their examples."""
FOLDERS = ("examples", "include", "csrc")
"""What a block may read, as in a checkout."""
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
NOT_RUN = ("run", "test", "not run: ")
"""Marks above blocks of shell that are not run here: the README's two commands, which .ci/run takes from there, and
what says why."""
LIBRARY = find_build("torch-directml-0.2.5.dev240914")
"""The build that blocks of `needs library` ask."""
PACKAGES = {"onnx": "onnx", "openvino": "defusedxml", "html": "jinja2", "distributed": "distributed"}
"""Word of a mark `needs NAME` -> module without which the page is skipped."""


class Block(NamedTuple):
    place: str
    mark: str
    language: str
    text: str


def blocks(page):
    source = page.read_text("utf-8")
    for match in BLOCK.finditer(source):
        line = source[: match.start("language")].count("\n") + 1
        yield Block(f"{page.name}:{line}", match["mark"] or "", match["language"], match["text"])


def run_python(text, folder):
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


SHELL = re.compile(r"[|&;<>$*?()`~]")


def run_console(text, folder, capsys=None):
    """Commands with what they print; a program of this package is that of the running interpreter, and where there is
    `capsys` is run inside of it, unless the shell has a part in it."""
    commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert commands[0] == ""
    for command in commands[1:]:
        line, _, expected = command.partition("\n")
        words = shlex.split(line)
        if capsys is not None and words[0] == "dmlsplit" and not SHELL.search(line):
            main(words[1:])
            assert "".join(capsys.readouterr()) == expected
            continue
        if words[0] in ("cc", "c++") and shutil.which(words[0]) is None:
            pytest.skip("no C compiler on the path")
        if words[0] == "dmlsplit":
            line = line.replace("dmlsplit", shlex.join([sys.executable, "-m", "dmlsplit"]), 1)
        elif words[0] == "python":
            line = line.replace("python", shlex.quote(sys.executable), 1)
        done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.stdout + done.stderr == expected


def run_c(text, folder, compiler="cc", standard="-std=c99"):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on the path")
    suffix = {"cc": "c", "c++": "cpp"}[compiler]
    (folder / f"block.{suffix}").write_text(text)
    library = ["libdmlsplit.a"] if (folder / "libdmlsplit.a").exists() else []  # a block before made it
    command = [
        compiler,
        standard,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Iinclude",
        f"block.{suffix}",
        *library,
        "-o",
        "block",
    ]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    subprocess.run(["./block"], cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)


def run_cpp(text, folder):
    run_c(text, folder, "c++", "-std=c++17")


def run_json(text, folder):
    dml.loads(text)


RUNNERS = {"python": run_python, "console": run_console, "c": run_c, "cpp": run_cpp, "json": run_json}


def faults(page, folder, capsys):
    """What is wrong with each block of a page, and where it is."""
    for block in blocks(page):
        if block.mark == "needs library":
            if not is_added(LIBRARY):
                pytest.skip(f"dmlsplit library add {LIBRARY} has not been run")
        elif block.mark.startswith("needs "):
            pytest.importorskip(PACKAGES[block.mark.removeprefix("needs ")])
        if block.language == "sh":
            assert block.mark.startswith(NOT_RUN), f"{block.place}: say why it is not run, or make it a console block"
            continue
        if block.language == "text":
            continue  # what another program prints
        assert block.language in RUNNERS, f"{block.place}: nothing runs {block.language!r}"
        runner = RUNNERS[block.language]
        if runner is run_console:
            runner = functools.partial(run_console, capsys=capsys)
        try:
            runner(block.text, folder)
        except AssertionError as error:
            yield f"{block.place}: {error}"


@pytest.mark.skipif(os.name != "posix", reason="the blocks are for a POSIX shell")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.slow] * (name == BUILDS_THE_CORE))
        for page, name in ((page, page.relative_to(ROOT).as_posix()) for page in PAGES if page not in RULES)
    ],
)
@pytest.mark.parametrize(
    "alone", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.thorough])], ids=["inside", "processes"]
)
def test_page(page, alone, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # as activated
    monkeypatch.setenv("COLUMNS", "80")
    for name in FOLDERS:
        (tmp_path / name).symlink_to(ROOT / name)
    wrong = []
    try:
        for fault in faults(page, tmp_path, None if alone else capsys):
            wrong.append(fault)
    except pytest.skip.Exception:  # a later block needs what is not installed
        if not wrong:
            raise
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


def test_all_wrong_blocks_of_a_page_are_shown(tmp_path, capsys):
    page = tmp_path / "page.md"
    block = "```console\n$ echo {}\n1\n```\n"
    page.write_text(block.format(2) + block.format(1) + block.format(3))
    first, second = faults(page, tmp_path, capsys)
    assert first.startswith("page.md:1: ")
    assert second.startswith("page.md:9: ")


def test_examples_of_rules_are_json_in_short_lines():
    assert len(RULES) > 200
    for page in RULES:
        for block in blocks(page):
            if block.language == "json":
                json.loads(block.text)
                assert max(map(len, block.text.splitlines())) <= 120 or '": "' in block.text, page


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
def test_compiler_line_of_the_readme(tmp_path):
    (line,) = re.findall(r"^cc .*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    subprocess.run(
        ["sh", "-c", line.replace("-o split", f"-o {tmp_path / 'split'}")], cwd=ROOT, check=True, timeout=300
    )
    assert (tmp_path / "split").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the blocks are for a POSIX shell")
def test_the_model_of_a_package(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (block,) = [block for block in blocks(ROOT / "docs" / "howto-onnx.md") if "silero-vad" in block.text]
    python = shlex.quote(sys.executable)
    text = re.sub("^dmlsplit ", "python -m dmlsplit ", block.text, flags=re.MULTILINE)
    download, *rest = re.sub("^python ", f"{python} ", text, flags=re.MULTILINE).splitlines()
    try:
        subprocess.run(["sh", "-c", download], cwd=tmp_path, check=True, capture_output=True, timeout=180)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"the package cannot be fetched: {type(error).__name__}")
    done = subprocess.run(
        ["sh", "-ec", "\n".join(rest)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr == ""
    assert re.search(
        r"^silero_vad/data/silero_vad_op18_ifless.onnx: 4 Splits and Concats among \d+ nodes", done.stdout, re.MULTILINE
    )


def test_the_device_example():
    done = subprocess.run(
        [sys.executable, "examples/device.py"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "top:    0.0 1.0 2.0 3.0\nbottom: 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0\n"
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
def test_the_device_example_has_a_c_counterpart(tmp_path):
    """The same descriptor and the same numbers, on the fast path."""
    sources = [ROOT / "examples" / "c" / "directml.c", *sorted((ROOT / "csrc").rglob("*.c"))]
    program = tmp_path / "directml"
    subprocess.run(["cc", f"-I{ROOT / 'include'}", *sources, "-o", program], check=True, timeout=300)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "top:    0 1 2 3\nbottom: 4 5 6 7 8 9 10 11\n"


def test_generated_pages_are_current():
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=True, timeout=120)


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


API = ROOT / "docs" / "api"


@pytest.mark.parametrize("name", ["", "graphs", "device", "onnx", "onnxruntime", "library"])
def test_every_public_name_is_on_a_page_of_the_api(name):
    """Those of a module on its own page, or on that of the package."""
    if name.startswith("onnx"):
        pytest.importorskip("onnx")

    def shown(page):
        return set(re.findall(r"^::: dmlsplit[\w.]*\.(\w+)$", (API / page).read_text("utf-8"), re.MULTILINE))

    public = set((getattr(dml, name) if name else dml).__all__) - {"OperatorDesc"}  # a union
    page = shown(f"{name or 'index'}.md")
    assert public <= page | shown("index.md")
    assert not name or page - shown("index.md")


def test_the_packages_short_names_are_on_a_page_of_the_api():
    """Those of former versions, too, which are not in __all__ any more."""
    shown = {
        word for page in API.glob("*.md") for word in re.findall(r"^::: [\w.]*\.(\w+)$", page.read_text("utf-8"), re.M)
    }
    modules = {"device", "graphs", "library", "onnx", "onnxruntime"}
    names = {name for name in dir(dml) if not name.startswith("_") and not inspect.ismodule(getattr(dml, name))}
    assert names - modules - {"OperatorDesc", "TYPE_CHECKING", "ModuleType", "lazy", "annotations"} <= shown


def test_pages_name_options_that_exist():
    commands = [cli, *cli.commands.values()]
    commands += [inner for command in commands[1:] for inner in getattr(command, "commands", {}).values()]
    options = {option for command in commands for parameter in command.params for option in parameter.opts} | {"--help"}
    for page in sorted((ROOT / "docs").glob("*.md")):
        for line in re.findall(r"`dmlsplit ([^`]*)`|^\$ dmlsplit (.*)$", page.read_text("utf-8"), re.MULTILINE):
            words = "".join(line).split()
            assert words[0] in cli.commands or words[0] == "COMMAND", f"{page.name}: {words[0]}"
            named = {word.split("=")[0] for word in words if word.startswith("--") and word != "--"}
            assert named <= options, f"{page.name}: {words}"


SEARCH = r"""
const fs = require("fs"), vm = require("vm");
delete globalThis.module;
delete globalThis.exports;
globalThis.importScripts = (...names) => names.forEach(name => vm.runInThisContext(fs.readFileSync(name, "utf-8")));
globalThis.XMLHttpRequest = class {
    addEventListener(_, handler) { this.handler = handler; }
    open(_, name) { this.responseText = fs.readFileSync(name, "utf-8"); }
    send() { this.handler.call(this); }
};
const answers = [];
globalThis.postMessage = message => { if (message.results) answers.push(message.results.map(page => page.location)); };
console.log = () => {};
importScripts("worker.js");
onmessage({data: {init: true}});
process.argv.slice(1).forEach(query => onmessage({data: {query}}));
process.stdout.write(JSON.stringify(answers));
"""
SOUGHT = {
    "find_package": "howto-c.html",
    "FetchContent": "howto-c.html",
    "dmlsplit_split_slice": "howto-c.html",
    "context-unknown": "rules/onnxruntime/context-unknown.html",
    "onnxruntime/context-unknown": "rules/onnxruntime/context-unknown.html",
    "split/axis-sizes-sum": "rules/split/axis-sizes-sum.html",
    "graph/fused-wrongly": "rules/graph/fused-wrongly.html",
    "AbiCustomRegistry": "logs.html#kernel-not-created",
    "GraphDescValidator": "logs.html#graph-description-refused",
    "887A0006": "logs.html#device-hung",
    "__array_interface__": "api/index.html",
    "dml.validate": "howto-directml.html",
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the path")
@pytest.mark.skipif(
    shutil.which("mkdocs", path=str(Path(sys.executable).parent)) is None, reason="pip install '.[docs]'"
)
def test_the_sites_search_finds_names_of_code(tmp_path):
    """Its own program answers; what it finds first are at most ten places."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    node = ["node", "-e", SEARCH, *SOUGHT]
    done = subprocess.run(
        node, cwd=tmp_path / "site" / "search", capture_output=True, text=True, check=True, timeout=120
    )
    for (query, page), found in zip(SOUGHT.items(), json.loads(done.stdout), strict=True):
        assert page in found[:10], query
    names = (tmp_path / "site" / "api" / "index.html").read_text("utf-8")
    assert "<code>__array_interface__</code>" in names
    assert "<strong>array_interface</strong>" not in names


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="no git on the path")
@pytest.mark.skipif(shutil.which("mike", path=str(Path(sys.executable).parent)) is None, reason="pip install '.[docs]'")
def test_the_site_has_pages_for_each_version(tmp_path):
    """As packaging/release.py says it, in a clone: strictly built, and what another version has is left as it was."""
    clone = tmp_path / "clone"
    environment = {
        **os.environ,
        **{f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # mike starts mkdocs
        "PYTHONPATH": str(clone),
    }

    def run(*words):
        done = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True, timeout=120)
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "index.md").write_text("before")
    (tmp_path / "mkdocs.yml").write_text("site_name: before\ndocs_dir: before\n")
    run("mike", "deploy", "--config-file", tmp_path / "mkdocs.yml", "0.0", "latest")
    run("mike", "deploy", "--update-aliases", "0.1", "latest")
    run("mike", "set-default", "latest")

    def page(path):
        return run("git", "show", f"gh-pages:{path}")

    assert [(v["version"], v["aliases"]) for v in json.loads(page("versions.json"))] == [
        ("0.1", ["latest"]),
        ("0.0", []),
    ]
    assert page("latest") == "0.1"  # a link
    assert "latest" in page("index.html")
    assert "before" in page("0.0/index.html")
    api = page("0.1/api/index.html")
    for name in (
        "checking.judging.validate",
        "descriptors.enums.TensorDataType.INT4",
        "descriptors.descs.BufferTensorDesc.sizes",
    ):
        assert f'id="dmlsplit.{name}"' in api
    assert "--feature-level" in page("0.1/cli.html")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the build is one for Linux")
def test_the_library_is_fetched_and_asked_as_the_readme_says(tmp_path, monkeypatch, capsys):
    """On a machine that has none: the commands behind the installation."""
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(ROOT)
    (block,) = [block for block in blocks(ROOT / "README.md") if "library add" in block.text]
    install, *commands = block.text.splitlines()
    assert install.endswith("pip install --quiet .")
    add, ask = [shlex.split(command) for command in commands]
    assert add[0] == ask[0] == ".venv/bin/dmlsplit"
    assert main(ask[1:]) == 2
    assert shlex.join(add[1:]) in capsys.readouterr().err
    if main(add[1:]) != 0:
        pytest.skip(f"the package cannot be fetched: {capsys.readouterr().err}")
    assert main(ask[1:]) == 0
    assert "DML_OPERATOR_GEMM: torch-directml-0.2.5.dev240914 accepts it" in capsys.readouterr().out
