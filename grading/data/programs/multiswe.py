"""Reads a log with the parser that the package multi-swe-bench has for a repository.

usage: multiswe.py TASK LOG OUTPUT

TASK is JSON: org, repo, number, tag, number_interval. The package names its parsers by organisation and repository, by these and
the tag (dots as underscores), or by organisation and interval of pull requests.
"""

import json
import sys


def main(task: str, log: str, output: str) -> None:
    with open(task, encoding="utf-8") as file:
        row = json.load(file)
    with open(log, encoding="utf-8", errors="replace", newline="") as file:
        said = file.read()

    import multi_swe_bench.harness.repos  # noqa: F401  (each module enters its parsers into the registry)
    from multi_swe_bench.harness.image import Config
    from multi_swe_bench.harness.instance import Instance
    from multi_swe_bench.harness.pull_request import Base, PullRequest

    request = PullRequest(
        org=row["org"],
        repo=row["repo"],
        number=row["number"],
        state="",
        title="",
        body="",
        base=Base(label="", ref="", sha=""),
        resolved_issues=[],
        fix_patch="",
        test_patch="",
        tag=row.get("tag", ""),
        number_interval=row.get("number_interval", ""),
    )
    instance = Instance.create(request, Config(need_clone=False, global_env=None, clear_env=False))
    result = instance.parse_log(said)
    sets = {
        name: sorted(getattr(result, name)) for name in ("passed_tests", "failed_tests", "skipped_tests")
    }
    with open(output, "w", encoding="utf-8") as file:
        json.dump(sets, file)


main(*sys.argv[1:])
