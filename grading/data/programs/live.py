"""Runs the parser of a SWE-bench-Live row: Python text that defines parser(log), from a log to {test: "pass" | "fail" | "skip"}.

usage: live.py ROW_PARSER LOG OUTPUT
"""

import json
import sys


def main(source: str, log: str, output: str) -> None:
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(log, encoding="utf-8", errors="replace", newline="") as file:
        said = file.read()
    # One namespace, as the text expects: its functions find each other and its imports.
    names = {"__name__": "row_parser"}
    exec(compile(text, source, "exec"), names)
    found = names["parser"](said)
    # A parser that found nothing may return None.
    outcomes = {str(name): str(status) for name, status in (found or {}).items()}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(outcomes, file)


main(*sys.argv[1:])
