"""Decides the reward of one task from the log of its tests, as the harness of its dataset does.

usage: grade.py TASK_JSON LOG EXIT_CODE FOLDER
Writes reward.txt (1 or 0) and report.json to FOLDER. Runs in the image of the task: Python 3.5 or newer, standard library only.
TASK_JSON has the tests and the names of parser and rule. covered.ts in the sources of swefarm lists the names that this program supports.
"""
import json
import os
import re
import sys

# The interpreter runs isolated, without the folder of the script in its path.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from readers import Unreadable, collect, reader_of

START, END, CODE = ">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code"
BAD_CODES = [">>>>> " + text for text in ("Patch Apply Failed", "Reset Failed", "Tests Errored", "Tests Timed Out")]


# the part of the log that counts


def between(log):
    """Returns the text between the first start marker and the next marker, as swebench does."""
    if any(code in log for code in BAD_CODES):
        raise Unreadable("the log has the marker of a failure")
    if START not in log or END not in log:
        raise Unreadable("the log has no markers")
    return log.split(START)[1].split(END)[0]


def read_marked(log, read):
    return read(between(log)) or read(log)


def read_latest(log, read):
    outcomes = read_marked(log, read)
    if not outcomes:
        raise Unreadable("the log names no test")
    code = re.search(re.escape(CODE) + r":\s{0,64}(-?\d{1,9})", log)
    if code and int(code.group(1)) and not {"FAILED", "ERROR"} & set(outcomes.values()):
        raise Unreadable("the exit code contradicts the outcomes")
    return outcomes


def read_fork(log, read):
    """Reads a log of SWE-Gym's harness, which has no markers."""
    if any(code in log for code in BAD_CODES) or "Failed to reset task environment" in log:
        raise Unreadable("the log has the marker of a failure")
    if "applied patch" not in log.lower():
        raise Unreadable("the test patch was not applied")
    return read(log.split(">>>>> Applied Patch (pred)")[-1])


def read_smith(log, read):
    """Reads the text between the markers in bash's trace."""
    if BAD_CODES[0] in log or BAD_CODES[3] in log:
        raise Unreadable("the log has the marker of a failure")
    if START not in log or END not in log:
        raise Unreadable("the log has no markers")
    start = "+ : '" + START + "'"
    first, last = log.find(start), log.find("+ : '" + END + "'")
    if first > last:
        raise Unreadable("the markers are not in order")
    return read(log[first + len(start) : last] if first >= 0 else "")


PARTS = {
    "4.1.0": read_marked,
    "5.0.2": read_latest,
    "swegym": read_fork,
    "swesmith": read_smith,
    "r2e-gym": lambda log, read: read(log),
    "swe-rebench": lambda log, read: read(between(log)),
    "swe-lego": lambda log, read: read(log),
    "swe-bench-live": lambda log, read: read(re.sub(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])", "", log)),
}


def find_by_prefix(outcomes, test):
    """Returns the status for an id that the dataset cut inside the brackets. Either all tests with this prefix must pass, or none."""
    if test.count("[") <= test.count("]"):
        return None
    found = [status for name, status in outcomes.items() if name.startswith(test)]
    return found[0] if len({status in ("PASSED", "XFAIL") for status in found}) == 1 else None


def by_lists(outcomes, task, latest):
    def succeeds(test, skipped):
        status = outcomes.get(test) or (find_by_prefix(outcomes, test) if latest else None)
        if status is None or status in ("FAILED", "ERROR"):
            return False
        return status in ("PASSED", "XFAIL") or not latest or status != "SKIPPED" or skipped

    return tests_of(task, lambda test: succeeds(test, False), lambda test: succeeds(test, True))


def tests_of(task, gained, kept=None):
    lists = {"FAIL_TO_PASS": gained, "PASS_TO_PASS": kept or gained}
    return {name: {test: bool(passes(test)) for test in task[name]} for name, passes in lists.items()}


def all_pass(tests):
    return all(passed for of_list in tests.values() for passed in of_list.values())


def swebench(outcomes, task):
    tests = by_lists(outcomes, task, False)
    return all_pass(tests), tests


def swebench_5(outcomes, task):
    tests = by_lists(outcomes, task, True)
    return all_pass(tests), tests


def subset(outcomes, task):
    tests = tests_of(task, lambda test: outcomes.get(test) == "PASSED")
    return all_pass(tests), tests


def equal(outcomes, task):
    resolved, tests = subset(outcomes, task)
    wanted = len(task["FAIL_TO_PASS"]) + len(task["PASS_TO_PASS"])
    return resolved and list(outcomes.values()).count("PASSED") == wanted, tests


def as_live(outcomes, task):
    def has(test, word):
        return word in outcomes.get(test, "").lower()

    tests = tests_of(task, lambda test: has(test, "pass"), lambda test: not has(test, "fail"))
    failed = any(has(test, "fail") for test in task["FAIL_TO_PASS"])
    return all_pass(tests) and not failed, tests


def expected(outcomes, task):
    """Compares tests and statuses with the row, which must be equal. The status of a test with an empty name is not compared."""

    def clean(entries):
        return collect((re.sub(r"\x1b\[\d+m", "", name).split(" - ")[0], status) for name, status in entries.items())

    wanted, found = clean(task["expected"]), clean(outcomes)
    tests = {"FAIL_TO_PASS": {}, "PASS_TO_PASS": {name: found.get(name) == wanted[name] for name in wanted if name}}
    same = all(name == "" or status == wanted.get(name) for name, status in found.items())
    return len(found) == len(wanted) and same, tests


RULES = {
    "swebench": swebench,
    "swebench-5": swebench_5,
    "subset": subset,
    "equal": equal,
    "live": as_live,
    "expected": expected,
}


def last_exit_code(log, pattern):
    """Returns the last number that the pattern finds. The pattern is plain text around one group of digits."""
    group = re.search(r"\((?:-\?)?(?:\\d|\[0-9\])\+\)", pattern)
    before, after = (re.sub(r"\\([^\w\s])", r"\1", text) for text in (pattern[: group.start()], pattern[group.end() :]))
    at = log.rfind(before)
    while at >= 0:
        start = at + len(before)
        code = re.match(r"-?[0-9]+", log[start : start + 12])
        if code and log.startswith(after, start + code.end()):
            return int(code.group()) if re.match(r"-?[0-9]{1,9}$", code.group()) else None
        at = log.rfind(before, 0, start - 1)
    return None


def grade(task, log, exit_code):
    """Returns the report. If the harness cannot read the log, the task is not resolved."""
    if task["rule"] == "exit_code":
        code = last_exit_code(log, task["pattern"]) if task.get("pattern") else exit_code
        return {"resolved": code == 0, "exit_code": code}
    try:
        outcomes = PARTS[task["dialect"]](log, reader_of(task["dialect"], task["parser"]))
    except Unreadable as error:
        return {"resolved": False, "unreadable": str(error)}
    resolved, tests = RULES[task["rule"]](outcomes, task)
    return {"resolved": bool(resolved), "tests": tests, "outcomes": outcomes}


def main(task_path, log_path, exit_code, folder):
    with open(task_path, encoding="utf-8") as file:
        task = json.load(file)
    with open(log_path, "rb") as file:
        log = file.read().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    report = grade(task, log, int(exit_code))
    with open(folder + "/report.json", "w") as file:
        json.dump(report, file, indent=1)
    with open(folder + "/reward.txt", "w") as file:
        file.write("1\n" if report["resolved"] else "0\n")
    print("resolved" if report["resolved"] else "not resolved")


if __name__ == "__main__":
    main(*sys.argv[1:])
