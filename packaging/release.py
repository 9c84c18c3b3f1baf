"""The check list of a release: `python packaging/release.py`, in the tree that is about to be tagged.

Says what is left to do, one line each, and exits with 1; where that is nothing, the commands of the release in their
order. Nothing is changed. Tests and packages are .ci/run's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

VERSION = ("dmlsplit/_version.py", r'^__version__: Final = "([^"]+)"$')
"""The file that states the version, and how."""
REPEATED = [
    ("include/dmlsplit.h", r'^/\* Returns the library\'s version, "([^"]+)"', 3),
    ("CITATION.cff", r"^version: (\S+)$", 3),
    ("docs/howto-ci.md", r"^- uses: \S+/dmlsplit@v(\S+)", 3),
    ("docs/howto-ci.md", r"^  rev: v(\S+)$", 3),
    ("docs/howto-c.md", r"^find_package\(dmlsplit (\S+) ", 2),
    ("packaging/conda/recipe.yaml", r'^  version: "([^"]+)"$', 3),
    ("packaging/vcpkg/ports/dmlsplit/vcpkg.json", r'^  "version": "([^"]+)",$', 3),
]
"""Files that repeat it, how, and how many of its numbers. What reads the header or the file above is not listed."""
HEADER = ("include/dmlsplit.h", r"^#define DMLSPLIT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$")
ADDRESS = ("pyproject.toml", r'^Repository = "(https://[^"]+)"$')
"""The file that states where the repository lies, under [project.urls], and how."""
ADDRESS_REPEATED = [
    ("CITATION.cff", r"^repository-code: (\S+)$"),
    ("docs/howto-ci.md", r"^- repo: (\S+)$"),
    ("packaging/conda/recipe.yaml", r"^  homepage: (\S+)$"),
    ("packaging/vcpkg/ports/dmlsplit/vcpkg.json", r'^  "homepage": "([^"]+)",$'),
]


def stated(root: Path, file: str, pattern: str) -> str:
    """What a file says by a pattern, in as many places as it does; empty where it does not."""
    return ".".join(re.findall(pattern, (root / file).read_text("utf-8"), re.MULTILINE))


def versions(root: Path) -> Iterator[str]:
    version = stated(root, *VERSION)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{VERSION[0]}: states no version of three numbers"
        return
    for file, pattern, count in [(*HEADER, 3), *REPEATED]:
        wanted = ".".join(version.split(".")[:count])
        found = stated(root, file, pattern)
        if found != wanted:
            yield f"{file}: states {found or 'no version'} where {VERSION[0]} has {wanted}: {pattern}"


def address(root: Path) -> Iterator[str]:
    """Whoever has only a package finds the sources by it; hooks and citations name it, too."""
    wanted = stated(root, *ADDRESS)
    if not wanted:
        yield f"{ADDRESS[0]}: states no address under [project.urls]: {ADDRESS[1]}"
        return
    for file, pattern in ADDRESS_REPEATED:
        found = stated(root, file, pattern)
        if found != wanted:
            yield f"{file}: states {found or 'no address'} where {ADDRESS[0]} has {wanted}: {pattern}"
    if f"uses: {'/'.join(wanted.split('/')[-2:])}@" not in (root / "docs" / "howto-ci.md").read_text("utf-8"):
        yield "docs/howto-ci.md: the action is not that of the address"


def changelog(root: Path) -> Iterator[str]:
    version = stated(root, *VERSION)
    text = (root / "CHANGELOG.md").read_text("utf-8")
    sections = {title: body.strip() for title, body in re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)}
    entry = [title for title in sections if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", title)]
    if not entry:
        yield f"CHANGELOG.md: has no section '## {version} - YYYY-MM-DD'"
    elif not sections[entry[0]]:
        yield f"CHANGELOG.md: says nothing about {version}"
    if sections.get("Unreleased"):
        yield "CHANGELOG.md: has changes under '## Unreleased'"


def generated_pages(root: Path) -> Iterator[str]:
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=root, capture_output=True, text=True)
    if done.returncode:
        said = done.stdout.strip() or (done.stderr.splitlines() or ["failed"])[-1]
        yield f"docs/generate.py --check: {said}"


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def repository(root: Path) -> Iterator[str]:
    changed = git(root, "status", "--porcelain").splitlines()
    if changed:
        yield f"git status: {len(changed)} files are changed or not known to git: {changed[0].strip()}"
    tag = f"v{stated(root, *VERSION)}"
    if git(root, "tag", "--list", tag) and git(root, "tag", "--points-at", "HEAD", "--list", tag) == "":
        yield f"git tag: {tag} is another commit already"


ORDER = [
    "bash .ci/run full",
    "git tag v{version}",
    "git push origin v{version}",
    "python -m build --sdist",
    "python -m cibuildwheel --output-dir dist",  # on each system
    "python -m twine upload dist/*",
    "mike deploy --push --update-aliases {series} latest",  # pages of other versions stay as they are
    "mike set-default --push latest",
]
"""The commands of a release; what cannot be taken back comes last but for the pages, which show what can be had."""


def order(root: Path) -> list[str]:
    version = stated(root, *VERSION)
    return [command.format(version=version, series=version.rpartition(".")[0]) for command in ORDER]


CHECKS: list[Callable[[Path], Iterator[str]]] = [versions, address, changelog, generated_pages, repository]


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    left = 0
    for check in CHECKS:
        for line in check(root):
            left += 1
            print(line)
    print(f"{left} left to do" if left else "\n  ".join(["ready:", *order(root)]))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
