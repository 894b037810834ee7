"""
usage: harness.py NAME ARGUMENTS ROWS: runs the evaluation of swebench or swesmith on local images. ARGUMENTS: JSON object for the
harness's main function. ROWS: JSONL file of the dataset. The harness is unchanged except for two points. swebench 4.1.0 gets the
repositories of the rows in its tables, as for a new repository. swesmith 0.0.9 would ask GitHub whether a mirror is private; without a
network the answer is always no.
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
