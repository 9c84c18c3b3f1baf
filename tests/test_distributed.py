"""The example that checks files on dask: a local cluster of two processes, and the same answers as here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from tests.cli.conftest import BAD, GOOD, MALFORMED, environment

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[1]
FILES = 2000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = []
    for i in range(FILES):
        text = MALFORMED if i % 401 == 7 else BAD if i % 10 == 3 else GOOD
        made.append(str(folder / f"{i}.json"))
        Path(made[-1]).write_text(text)
    return made


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.thorough
def test_thousands_of_files(files, cluster):
    from distributed import Client

    with Client(cluster) as client:
        far = list(dml.check_files(files, feature_level="3_0", executor=client.get_executor()))
    assert [report.to_dict() for report in far] == [
        report.to_dict() for report in dml.check_files(files, feature_level="3_0")
    ]
    assert sum(not report.ok for report in far) == sum(i % 10 == 3 or i % 401 == 7 for i in range(FILES))


@pytest.mark.slow
def test_the_example(files, cluster):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "check_on_dask.py", "--scheduler", cluster.scheduler_address, *files[:12]],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["file"] for answer in answers] == files[:12]
    assert [answer["ok"] for answer in answers] == [i not in (3, 7) for i in range(12)]
