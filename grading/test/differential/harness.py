"""Answers for the real harness: reads cases as JSON lines, writes what it says of each. Runs in its venv."""

import json
import sys
import tempfile
from types import SimpleNamespace

import swebench.harness.grading as grading


def parsers_old():
    from swebench.harness.log_parsers import c, go, java, javascript, php, python, ruby, rust

    found = {}
    for module in (c, go, java, javascript, php, python, ruby, rust):
        for name in dir(module):
            if name.startswith("parse_log_"):
                found[name[len("parse_log_") :]] = getattr(module, name)
    return found


def parsers_new():
    from swebench.harness.log_parsers import PARSER_REGISTRY

    return {name[len("parse_log_") :]: parser for name, parser in PARSER_REGISTRY.items()}


OLD = not hasattr(grading, "PARSER_REGISTRY")
PARSERS = parsers_old() if OLD else parsers_new()


def spec_of(case):
    return SimpleNamespace(
        instance_id=case["instance_id"],
        repo=case["repo"],
        version=case["version"],
        log_parser=case["parser"],
        eval_type=case["eval_type"],
        FAIL_TO_PASS=case["FAIL_TO_PASS"],
        PASS_TO_PASS=case["PASS_TO_PASS"],
    )


def read(case):
    return PARSERS[case["parser"]](case["log"], spec_of(case))


def grade(case):
    if OLD:
        grading.MAP_REPO_TO_PARSER = {case["repo"]: PARSERS[case["parser"]]}
        grading.MAP_REPO_VERSION_TO_SPECS = {case["repo"]: {case["version"]: {"test_cmd": "t"}}}
        grading.FAIL_ONLY_REPOS = {case["repo"]} if case["eval_type"] == "fail_only" else set()
    else:
        grading.PARSER_REGISTRY = PARSERS
    with tempfile.NamedTemporaryFile("w", suffix=".log", newline="") as log:
        log.write(case["log"])
        log.flush()
        prediction = {"instance_id": case["instance_id"], "model_name_or_path": "m", "model_patch": "diff"}
        return grading.get_eval_report(spec_of(case), prediction, log.name, True)


def script(case):
    """Its eval script alone: make_test_spec would also fetch requirements from the network."""
    from swebench.harness.constants import MAP_REPO_VERSION_TO_SPECS
    from swebench.harness.test_spec.create_scripts import make_eval_script_list

    row = case["row"]
    specs = MAP_REPO_VERSION_TO_SPECS[row["repo"]][row["version"]]
    lines = make_eval_script_list(row, specs, "testbed", "/testbed", row["base_commit"], row["test_patch"])
    return "\n".join(["#!/bin/bash", "set -uxo pipefail"] + lines) + "\n"


ANSWERS = {"read": read, "grade": grade, "script": script}


def main():
    answers = sys.stdout
    sys.stdout = sys.stderr  # parsers print
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = {"value": ANSWERS[case["ask"]](case)}
        except Exception as error:  # the exception is the answer
            answer = {"raises": type(error).__name__}
        answers.write(json.dumps(answer) + "\n")


main()
