"""packaging/release.py: nothing is left to do in a tree that is ready, and each omission is named."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("release", ROOT / "packaging" / "release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)

VERSION = release.stated(ROOT, *release.VERSION)
REPEATED = [release.HEADER, *((file, pattern) for file, pattern, _ in release.REPEATED)]
ADDRESS = "https://example.org/owner/dmlsplit"
CHANGES = f"# Changes\n\n## Unreleased\n\n## {VERSION} - 2030-01-31\n\n- First.\n\n## 0.0.1 - 2029-01-01\n\n- Older.\n"


def test_this_tree_states_one_version():
    assert list(release.versions(ROOT)) == []


def git(tree, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "tag.gpgSign=false", "-c", "commit.gpgSign=false")
    subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True)


def publish(tree):
    """Writes the address of the repository into every file that states one."""
    (tree / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{ADDRESS}"\n')
    for file, old, new in [
        ("CITATION.cff", "license: ", f"repository-code: {ADDRESS}\nlicense: "),
        ("docs/howto-ci.md", "URL-OF-THE-REPOSITORY", ADDRESS),
        ("docs/howto-ci.md", "OWNER/", "owner/"),
        ("packaging/conda/recipe.yaml", "about:\n", f"about:\n  homepage: {ADDRESS}\n"),
        ("packaging/vcpkg/ports/dmlsplit/vcpkg.json", '  "license"', f'  "homepage": "{ADDRESS}",\n  "license"'),
    ]:
        text = (tree / file).read_text("utf-8")
        assert old in text, file
        (tree / file).write_text(text.replace(old, new), "utf-8")


@pytest.fixture
def tree(tmp_path):
    """The files that are looked at, ready to be released; the generator of pages is content with them."""
    if shutil.which("git") is None:
        pytest.skip("no git on the path")
    tree = tmp_path / "tree"
    addresses = {file for file, _ in release.ADDRESS_REPEATED}
    for file in {"packaging/release.py", release.VERSION[0], *(file for file, _ in REPEATED), *addresses}:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, tree / file)
    publish(tree)
    (tree / "CHANGELOG.md").write_text(CHANGES)
    (tree / "docs" / "generate.py").write_text("import sys\nassert sys.argv[1:] == ['--check']\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Ready")
    return tree


def run(tree):
    done = subprocess.run([sys.executable, "packaging/release.py"], cwd=tree, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def edit(tree, file, old, new):
    text = (tree / file).read_text("utf-8")
    assert old in text
    (tree / file).write_text(text.replace(old, new), "utf-8")
    git(tree, "commit", "-q", "-a", "-m", "Edited")


def test_a_tree_that_is_ready(tree):
    """The order ends with the pages of this version, X.Y: a patch takes the place of the one before."""
    status, lines = run(tree)
    assert (status, lines[0]) == (0, "ready:")
    words = [line.split() for line in lines[1:]]
    tag, upload, deploy = (
        next(i for i, found in enumerate(words) if word in found) for word in (f"v{VERSION}", "upload", "deploy")
    )
    assert tag < upload < deploy
    assert words[deploy][-2:] == [VERSION.rpartition(".")[0], "latest"]


def test_a_version_that_nothing_else_states(tree):
    edit(tree, release.VERSION[0], VERSION, "9.8.7")
    status, lines = run(tree)
    assert status == 1
    for file, pattern in REPEATED:
        assert any(line.startswith(f"{file}: states ") and line.endswith(pattern) for line in lines), (file, pattern)
    assert "CHANGELOG.md: has no section '## 9.8.7 - YYYY-MM-DD'" in lines
    assert lines[-1] == f"{len(REPEATED) + 1} left to do"


@pytest.mark.parametrize(("file", "pattern"), REPEATED)
def test_a_file_that_says_no_version_any_more(tree, file, pattern):
    (tree / file).write_text("")
    assert any(line.startswith(f"{file}: states no version ") for line in release.versions(tree))


def test_no_version_at_all(tree):
    edit(tree, release.VERSION[0], VERSION, "soon")
    assert run(tree)[1][0] == "dmlsplit/_version.py: states no version of three numbers"


def test_no_address(tree):
    edit(tree, "pyproject.toml", ADDRESS, "")
    assert run(tree) == (
        1,
        [f"pyproject.toml: states no address under [project.urls]: {release.ADDRESS[1]}", "1 left to do"],
    )


def test_another_address(tree):
    edit(tree, "pyproject.toml", "owner", "other")
    status, lines = run(tree)
    assert status == 1
    for file, pattern in release.ADDRESS_REPEATED:
        assert any(line.startswith(f"{file}: states {ADDRESS} ") and line.endswith(pattern) for line in lines), file
    assert "docs/howto-ci.md: the action is not that of the address" in lines


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("## Unreleased\n", "## Unreleased\n\n- More.\n", "has changes under '## Unreleased'"),
        ("- First.\n", "", f"says nothing about {VERSION}"),
        (" - 2030-01-31", "", f"has no section '## {VERSION} - YYYY-MM-DD'"),
    ],
)
def test_the_changelog(tree, old, new, wanted):
    edit(tree, "CHANGELOG.md", old, new)
    assert run(tree) == (1, [f"CHANGELOG.md: {wanted}", "1 left to do"])


def test_a_changelog_without_a_section_for_what_comes(tree):
    edit(tree, "CHANGELOG.md", "## Unreleased\n\n", "")
    assert run(tree)[0] == 0


def test_pages_that_are_not_current(tree):
    (tree / "docs" / "generate.py").write_text("import sys\nsys.exit('rules.md is old')\n")
    git(tree, "commit", "-q", "-a", "-m", "Edited")
    assert run(tree) == (1, ["docs/generate.py --check: rules.md is old", "1 left to do"])


def test_what_is_not_committed(tree):
    (tree / "new").write_text("")
    assert run(tree) == (1, ["git status: 1 files are changed or not known to git: ?? new", "1 left to do"])


def test_a_tag_of_another_commit(tree):
    git(tree, "tag", f"v{VERSION}")
    assert run(tree)[0] == 0
    edit(tree, "CHANGELOG.md", "First", "The first")
    assert run(tree) == (1, [f"git tag: v{VERSION} is another commit already", "1 left to do"])
