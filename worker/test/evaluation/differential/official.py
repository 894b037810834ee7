"""Spoils gold patches, and evaluates each as the official harness does: its apply commands, its eval script, its grading, by docker exec.

Runs in a venv with swebench 4.1.0. Reads one dataset row per line, writes per row {instance_id, grader, against, cases: [{name,
patch, applied, report, statuses}]}. Nothing of ours takes part. By what is known of a row's repository:
- swebench's table has it: all of swebench 4.1.0;
- it is SWE-Gym's: the fork is not on PyPI. Its rules (other apply commands, no markers, the whole log read, `applied patch` must
  occur in it) are written down here, around swebench 4.1.0's own script builder, pytest parser and grading functions;
- nobody has it: the row's commands and parser enter swebench's tables, as a new repository does; then all of swebench 4.1.0.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from swebench.harness import grading
from swebench.harness.constants import MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
from swebench.harness.log_parsers import MAP_REPO_TO_PARSER
from swebench.harness.log_parsers import python as python_parsers
from swebench.harness.run_evaluation import GIT_APPLY_CMDS
from swebench.harness.test_spec.create_scripts import make_eval_script_list

DOCKER_RUN = ["docker", "run", "-d", "--rm", "--network", "none", "--label", "swefarm.test=differential"]
FORK_REPOS = {"getmoto/moto"}
FORK_APPLY_CMDS = ["git apply --allow-empty -v", "patch --batch --fuzz=5 -p1 -i"]
FORK_BAD_CODES = [
    ">>>>> Patch Apply Failed",
    ">>>>> Reset Failed",
    ">>>>> Tests Errored",
    ">>>>> Tests Timed Out",
    "Failed to reset task environment",
]


def run(argv, **options):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class Container:
    def __init__(self, image):
        self.id = subprocess.check_output([*DOCKER_RUN, image, "tail", "-f", "/dev/null"], text=True).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        run(["docker", "rm", "-f", self.id])

    def put(self, path, content):
        run(["docker", "exec", "-i", self.id, "bash", "-c", f"cat > {path}"], input=content, check=True)

    def execute(self, command):
        return run(["docker", "exec", "-w", "/testbed", "-u", "root", self.id, "bash", "-c", command])


def tests_of(row):
    return re.findall(r"diff --git a/.* b/(.*)", row["test_patch"])


def edited(row, script):
    """Gold, then a script, as git sees both; what the image's builder left uncommitted is no part of it."""
    with Container(row["image"]) as container:
        container.put("/tmp/gold.diff", row["patch"].encode())
        container.execute("git -c user.name=n -c user.email=e@x commit -qam builder")
        ran = container.execute(f"git apply /tmp/gold.diff && {script} && git add -A && git diff --cached --binary HEAD")
        if ran.returncode != 0:
            raise SystemExit(f"{row['instance_id']}: {ran.stdout.decode(errors='replace')[-500:]}")
        return ran.stdout.decode()


def wrong(patch):
    lines = patch.split("\n")
    added = [i for i, line in enumerate(lines) if re.match(r"\+\s*\w", line) and not line.startswith("+++")]
    indent = re.match(r"\+(\s*)", lines[added[-1]]).group(1)
    lines[added[-1]] = f"+{indent}pass"
    return "\n".join(lines)


def fuzzy(patch):
    """The first context line of each hunk is not what the file has: git refuses, patch with fuzz does not."""
    return re.sub(r"(^@@ [^\n]*\n) [^\n]*\n", r"\1 # some other line\n", patch, flags=re.M)


def corrupt(patch):
    return re.sub(r"^(@@ -\d+,)(\d+)", lambda m: f"{m.group(1)}{int(m.group(2)) + 7}", patch, count=1, flags=re.M)


def spoiled(row):
    gold = row["patch"]
    name = re.search(r"^diff --git a/(\S+)", gold, re.M).group(1)
    folder = str(Path(name).parent)
    neighbour = (
        f"f=$(ls {folder}/*.py | grep -v -e __ -e {name} | head -1); f=${{f:-{name}}}; "
        "printf '\\nraise RuntimeError(1)\\n' >> $f"
    )
    big = "".join(f"+{'x' * 99}\n" for _ in range(52_000))
    return {
        "gold": gold,
        "noop": "",
        "wrong fix": wrong(gold),
        "fix and a broken neighbour": edited(row, neighbour),
        "deleted tests": edited(row, f"rm -f {' '.join(tests_of(row))}"),
        "no final newline": gold.rstrip("\n"),
        "only fuzz": fuzzy(gold),
        "corrupt hunk": corrupt(gold),
        "binary": edited(row, "head -c 3000 /dev/urandom > blob.bin"),
        "5 MB": f"{gold}diff --git a/big.txt b/big.txt\nnew file mode 100644\n--- /dev/null\n+++ b/big.txt\n@@ -0,0 +1,52000 @@\n{big}",
    }


def own(row, name):
    """A row may say how its image is installed without a network and tested; it does so for both sides."""
    return row.get(name, row.get("environment", {}).get(name))


def enter(row):
    """The row's commands into the harness's tables: it reads the test command from there whatever it is handed."""
    repo, version = row["repo"], row["version"]
    known = repo in MAP_REPO_VERSION_TO_SPECS
    if not known:
        MAP_REPO_TO_EXT[repo] = "py"
        MAP_REPO_TO_PARSER[repo] = getattr(python_parsers, f"parse_log_{own(row, 'log_parser')}")
    specs = MAP_REPO_VERSION_TO_SPECS.setdefault(repo, {}).setdefault(version, {})
    specs.update({name: own(row, name) for name in ("install", "test_cmd") if own(row, name)})
    return known


def eval_lines(row):
    specs = MAP_REPO_VERSION_TO_SPECS[row["repo"]][row["version"]]
    return make_eval_script_list(row, specs, "testbed", "/testbed", row["base_commit"], row["test_patch"])


def official_script(row):
    return ["#!/bin/bash", "set -uxo pipefail", *eval_lines(row)]


def fork_script(row):
    lines = [line for line in eval_lines(row) if not line.startswith(": '>>>>> ")]
    plain = [line.replace("git -c core.fileMode=false diff", "git diff") for line in lines]
    return ["#!/bin/bash", "set -xo pipefail", *plain]


def official_grading(row, patch, path):
    spec = spec_of(row)
    prediction = {"instance_id": row["instance_id"], "model_name_or_path": "m", "model_patch": patch or "x"}
    report = grading.get_eval_report(spec, prediction, path, True)[row["instance_id"]]
    return report, grading.get_logs_eval(spec, path)[0]


def fork_grading(row, _patch, path):
    spec = spec_of(row)
    log = Path(path).read_text()
    report = {"resolved": False, "patch_successfully_applied": False}
    if any(code in log for code in FORK_BAD_CODES) or "applied patch" not in log.lower():
        return report, {}
    statuses = MAP_REPO_TO_PARSER[row["repo"]](log.split(">>>>> Applied Patch (pred)")[-1], spec)
    expected = {"FAIL_TO_PASS": spec.FAIL_TO_PASS, "PASS_TO_PASS": spec.PASS_TO_PASS}
    tests = grading.get_eval_tests_report(statuses, expected)
    resolved = grading.get_resolution_status(tests) == "RESOLVED_FULL"
    return {"resolved": resolved, "patch_successfully_applied": True, "tests_status": tests}, statuses


OFFICIAL = {
    "grader": "swebench-4.1.0",
    "apply": GIT_APPLY_CMDS,
    "script": official_script,
    "grade": official_grading,
}
FORK = {"grader": "swegym", "apply": FORK_APPLY_CMDS, "script": fork_script, "grade": fork_grading}


def evaluate(row, rules, patch):
    with Container(row["image"]) as container:
        applied = None
        if patch:
            container.put("/tmp/patch.diff", patch.encode())
            for command in rules["apply"]:
                if container.execute(f"{command} /tmp/patch.diff").returncode == 0:
                    applied = command
                    break
            if applied is None:
                return {"applied": None, "report": None, "statuses": None}
        container.put("/eval.sh", ("\n".join(rules["script"](row)) + "\n").encode())
        log = container.execute("/bin/bash /eval.sh").stdout
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(log)
        report, statuses = rules["grade"](row, patch, file.name)
    return {"applied": applied, "report": report, "statuses": statuses}


def spec_of(row):
    return SimpleNamespace(
        instance_id=row["instance_id"],
        repo=row["repo"],
        version=row["version"],
        FAIL_TO_PASS=listed(row["FAIL_TO_PASS"]),
        PASS_TO_PASS=listed(row["PASS_TO_PASS"]),
    )


def listed(tests):
    return json.loads(tests) if isinstance(tests, str) else tests


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        row = json.loads(line)
        known = enter(row)
        rules = FORK if row["repo"] in FORK_REPOS else OFFICIAL
        fork = "the fork's rules around swebench 4.1.0's parser and grading"
        against = fork if rules is FORK else "swebench 4.1.0" if known else "swebench 4.1.0 with the row's commands"
        cases = [{"name": name, "patch": patch, **evaluate(row, rules, patch)} for name, patch in spoiled(row).items()]
        answer = {"instance_id": row["instance_id"], "grader": rules["grader"], "against": against, "cases": cases}
        print(json.dumps(answer), file=answers, flush=True)


main()
