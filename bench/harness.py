"""Runs a harness of others on local images: NAME (swebench or swesmith), then a JSON text of what its main takes, then the rows.

swebench 4.1.0: rows of repositories that its tables lack enter them, as a new repository does; all else is its own.
swesmith 0.0.9: it asks GitHub whether the mirror is private, and there is no network here: the answer is given. All else is its own.
"""

import json
import sys


def swebench(arguments, rows):
    from swebench.harness.constants import MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
    from swebench.harness.log_parsers import MAP_REPO_TO_PARSER
    from swebench.harness.log_parsers import python as parsers
    from swebench.harness.run_evaluation import main

    for row in rows:
        repo = row["repo"]
        MAP_REPO_TO_EXT[repo] = "py"
        MAP_REPO_TO_PARSER[repo] = getattr(parsers, f"parse_log_{row['log_parser']}")
        specs = {name: row[name] for name in ("install", "test_cmd") if name in row}
        MAP_REPO_VERSION_TO_SPECS.setdefault(repo, {})[row["version"]] = {"python": "3.11", **specs}
    main(**arguments)


def swesmith(arguments, _rows):
    from swesmith.harness.eval import main
    from swesmith.profiles.base import RepoProfile

    RepoProfile._is_repo_private = lambda _self: False
    main(**arguments)


name, arguments, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    lines = [json.loads(line) for line in file if line.strip()]
{"swebench": swebench, "swesmith": swesmith}[name](json.loads(arguments), lines)
