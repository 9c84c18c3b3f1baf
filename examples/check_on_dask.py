"""`dmlsplit check` over many models on a cluster: python examples/check_on_dask.py [--scheduler ADDRESS] FILE...

Needs dask: pip install 'dmlsplit[distributed]'. Workers have dmlsplit installed and see the files under the same names.
Prints one JSON answer per line, as `dmlsplit check --format jsonl` does; without an address it uses the CPUs of this
machine.
"""

import argparse
import json

from distributed import Client

import dmlsplit as dml


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--scheduler", help="tcp://host:port of a running dask scheduler")
    parser.add_argument("--feature-level")
    options = parser.parse_args()

    errors = 0
    with Client(options.scheduler) as client:
        executor = client.get_executor()
        for report in dml.check_files(options.files, feature_level=options.feature_level, executor=executor):
            print(json.dumps(report.to_dict()))
            errors += not report.ok
    return int(errors > 0)


if __name__ == "__main__":
    raise SystemExit(main())
