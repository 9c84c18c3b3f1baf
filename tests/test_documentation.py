"""Every example of the README and of docs/ runs: python blocks as they are, console blocks with their output."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return list(_blocks(language))


def _blocks(language):
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text("utf-8")), 1):
            if match[1] == language:
                yield pytest.param(match[2], id=f"{page.name}:{number}")


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path):
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


@pytest.mark.parametrize("text", blocks("console"))
def test_console(text):
    commands = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    assert commands
    for command in commands:
        line, _, expected = command.partition("\n")
        program, *arguments = shlex.split(line)
        assert program == "dmlsplit"
        done = subprocess.run(
            [sys.executable, "-m", "dmlsplit", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.stdout + done.stderr == expected


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
@pytest.mark.parametrize("text", [b for b in blocks("sh") if b.values[0].startswith("cc ")])
def test_compiler_lines(text, tmp_path):
    subprocess.run(
        ["sh", "-c", text.replace("-o split", f"-o {tmp_path / 'split'}")], cwd=ROOT, check=True, timeout=300
    )
    assert (tmp_path / "split").exists()


def test_generated_pages_are_current():
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=True, timeout=120)


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
