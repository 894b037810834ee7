"""Reads the status of each test from a log, as the harnesses of datasets do. Python 3.5 or newer, standard library only."""
import re
from collections import OrderedDict

WORDS = ("FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL")


class Unreadable(Exception):
    """Signals that the harness reads no outcomes from the log."""


def collect(pairs):
    """Returns the status of each test; the last line about a test counts."""
    found = OrderedDict()
    for name, status in pairs:
        found[name] = status
    return found


def by_line(read):
    """Returns a reader of logs. `read` gets a line and the dialect, and returns name and status, or None."""

    def reader(log, dialect):
        return collect(filter(None, (read(line, dialect) for line in log.split("\n"))))

    return reader


def matching(pattern, flip=False):
    """Returns a reader for lines that match the pattern. The groups are name and status, or status and name with `flip`."""
    compiled = re.compile(pattern)

    def read(line, dialect):
        found = compiled.match(line)
        return found and (found.groups()[::-1] if flip else found.groups())

    return by_line(read)


# pytest's short summary


def counts_skips(dialect, status, name):
    return dialect == "5.0.2" and status == "SKIPPED" and re.match(r"\[\d+\]$", name)


def summary(line, dialect):
    if not line.startswith(WORDS):
        return None
    parts = (line.replace(" - ", " ") if line.startswith("FAILED") else line).split()[:2]
    if len(parts) < 2 or counts_skips(dialect, parts[0], parts[1]):
        return None
    return parts[1], parts[0]


def shorten_option(name):
    """Shortens an absolute path in the brackets of a name, because paths differ between machines."""
    start, end = name.find("["), name.rfind("]")
    if start < 0 or end < start:
        return name
    option = name[start + 1 : end]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = option[option.rfind("/") :]
    return name[:start] + "[" + option + "]"


def summary_options(line, dialect):
    found = summary(line, dialect)
    return found and (shorten_option(found[0]), found[1])


def summary_matplotlib(line, dialect):
    return summary(line.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"), dialect)


def without_controls(line):
    return re.sub(r"[\x01-\x1f]", "", re.sub(r"\[\d+m", "", line))


def summary_v2(line, dialect):
    """Reads the status at the start of a line, or at the end, where old versions of pytest print it."""
    line = without_controls(line)
    return v2_latest(line, dialect) if dialect == "5.0.2" else v2(line, dialect)


def v2(line, dialect):
    first = line.startswith(WORDS)
    if not first and not line.endswith(WORDS):
        return None
    parts = (line.replace(" - ", " ") if line.startswith("FAILED") else line).split()[:2]
    if len(parts) < 2:
        if dialect == "swegym":
            raise Unreadable("a summary line has one field")
        return None
    return (parts[1], parts[0]) if first else (parts[0], parts[1])


def v2_latest(line, dialect):
    """Reads a line as swebench 5.0.2 does: names may contain blanks, and the reason after ` - ` is dropped."""
    if line.startswith(WORDS):
        parts = (line.split(" - ")[0] if line.startswith("FAILED") else line).split()
        if len(parts) < 2 or counts_skips(dialect, parts[0], parts[1]):
            return None
        return " ".join(parts[1:]), parts[0]
    if line.endswith(WORDS):
        parts = line.split()
        return (" ".join(parts[:-1]), parts[-1]) if len(parts) > 1 else None
    return None


def summary_pydantic(line, dialect):
    return v2(re.sub(r"FAILED\s*\[[^\]]*\]", "FAILED", without_controls(line)), dialect)


def seaborn(line, dialect):
    failed = line.startswith("FAILED")
    inside = not failed and " PASSED " in line
    if not failed and not inside and not line.startswith("PASSED"):
        return None
    parts = line.split()[:2]
    if len(parts) < 2:
        if dialect != "5.0.2":
            raise Unreadable("a summary line has one field")
        return None
    if failed:
        return parts[1], "FAILED"
    if not inside:
        return parts[1], "PASSED"
    return (parts[0], "PASSED") if parts[1] == "PASSED" else None


# runners of other projects


def sympy(log, dialect):
    """Reads a title between underscores above each failure, then one line per test."""
    pairs = []
    for line in log.split("\n"):
        start, end = line.find(" "), line.rfind(" ")
        divide = line.rfind(".py:", 0, end) if start >= 0 and end >= 4 else -1
        if divide > start:
            pairs.append((line[start + 1 : end], "FAILED"))
    for line in log.split("\n"):
        line = line.strip()
        if not line.startswith("test_"):
            continue
        # `[OK]` or `[FAIL]` of a file follows the file's last test.
        if dialect == "swegym" and line.endswith(("[FAIL]", "[OK]")):
            line = line[: line.rfind("[")].rstrip()
        for ending, status in ((" E", "ERROR"), (" F", "FAILED"), (" ok", "PASSED")):
            if line.endswith(ending):
                pairs.append((line.split()[0], status))
                break
    return collect(pairs)


DJANGO_PASSES = (" ... ok", " ... OK", " ...  OK")
DJANGO_VERSION = "--version is equivalent to version"
DJANGO_TORN = [
    r"^(.*?)\s\.\.\.\sTesting against Django installed in [\s\S]*? silenced\)\.\nok$",
    r"^(.*?)\s\.\.\.\sInternal Server Error: /.*/\nok$",
    r"^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$",
]


def second_field(line):
    parts = line.split()
    if len(parts) < 2:
        raise Unreadable("a line of a failure names no test")
    return parts[1]


def django(log, dialect):
    """Reads Django's runner. An outcome is at the end of the test's line, or on a later line after other output."""
    pairs, opened = [], None
    for line in map(str.strip, log.split("\n")):
        if DJANGO_VERSION in line:
            pairs.append((DJANGO_VERSION, "PASSED"))
        if " ... " in line:
            opened = line.split(" ... ")[0]
        suffix = next((one for one in DJANGO_PASSES if line.endswith(one)), None)
        if suffix is not None:
            if line.startswith("Applying sites.0002_alter_domain_unique...test_no_migrations"):
                line = line.split("...", 1)[1].strip()
            pairs.append((line[: -len(suffix)] if line.endswith(suffix) else line, "PASSED"))
        if " ... skipped" in line:
            pairs.append((line.split(" ... skipped")[0], "SKIPPED"))
        for ending, status in (("FAIL", "FAILED"), ("ERROR", "ERROR")):
            if line.endswith(" ... " + ending):
                pairs.append((line.split(" ... " + ending)[0], status))
            if line.startswith(ending + ":"):
                pairs.append((second_field(line), status))
        if line.startswith("ok") and opened is not None:
            pairs.append((opened, "PASSED"))
    for pattern in DJANGO_TORN:
        pairs += [(found.group(1), "PASSED") for found in re.finditer(pattern, log, re.MULTILINE)]
    return collect(pairs)


def tornado(line, dialect):
    if line.endswith("... ok"):
        return line.split(" ... ")[0], "PASSED"
    if " ... skipped " in line:
        return line.split(" ... ")[0], "SKIPPED"
    if line.startswith(("ERROR:", "FAIL:")):
        return " ".join(line.split()[1:3]), "FAILED"
    return None


def smith_mypy(line, dialect):
    status = "PASSED" if "PASSED" in line else "FAILED" if "FAILED" in line else None
    parts = line.split()
    return (parts[-1], status) if status and parts else None


def slugify(line, dialect):
    found = re.match(r"([a-zA-Z0-9_,.()'\s-]+)\s\.\.\.\s", line)
    word = next((word for word in ("ok", "FAIL", "ERROR") if line.endswith(word)), None)
    return (found.group(1), {"ok": "PASSED", "FAIL": "FAILED"}.get(word, word)) if found and word else None


def r2e(log, dialect):
    """Reads the text between the first two headers. A line without `::` is a test with an empty name."""
    parts = re.sub(r"\x1b\[[0-9;]*m|\r", "", log).split("short test summary info")
    pairs = []
    for line in (parts[1] if len(parts) > 1 else "").strip().split("\n"):
        status = next((word for word in ("PASSED", "FAILED", "ERROR") if word in line), None)
        if status is not None:
            name = ".".join(line.split("::")[1:])
            pairs.append((name if status == "PASSED" else name.split(" - ")[0], status))
    return collect(pairs)


def r2e_nemo(line, dialect):
    found = re.match(r"(PASSED|FAILED|ERROR|XFAIL|SKIPPED)\s+(\S+)", line.replace(" - ", " ").strip())
    return found and (found.group(2), found.group(1))


def whole_names(line, dialect):
    found = re.match(r"(PASSED|FAILED|ERROR|XFAIL|XPASS)\s+(\S.*?)(?:\s-\s|$)", line.strip())
    return found and (found.group(2).rstrip(), found.group(1))


def live(line, dialect):
    found = summary(line, dialect)
    return found and (found[0], {"PASSED": "pass", "SKIPPED": "skip"}.get(found[1], "fail"))


WORD = "(" + "|".join(WORDS) + ")"
PYTHON = {
    "django": django,
    "matplotlib": by_line(summary_matplotlib),
    "pytest": by_line(summary),
    "pytest_options": by_line(summary_options),
    "pytest_v2": by_line(summary_v2),
    "pytest_pydantic": by_line(summary_pydantic),
    "seaborn": by_line(seaborn),
    "sympy": sympy,
}
SMITH = {
    "python-pytest-v": matching(r"(\S+)\s+" + WORD),
    "cpp-pytest": matching(r"(\S+)\s+(FAILED|PASSED|SKIPPED|ERROR)"),
    "python-pytest-rA": matching(WORD + r"\s(\S+)", True),
    "python-xdist-v": matching(r"\[gw\d\]\s" + WORD + r"\s(\S+)", True),
    "python-slugify": by_line(slugify),
    "tornado": by_line(tornado),
    "mypy": by_line(smith_mypy),
}
OTHERS = {"r2e": r2e, "r2e_nemo": by_line(r2e_nemo), "pytest_rA": by_line(whole_names)}


def reader_of(dialect, parser):
    """Returns a function that reads outcomes from a log. Raises KeyError for an unknown name of a parser."""
    readers = dict(PYTHON, **(SMITH if dialect == "swesmith" else OTHERS))
    reader = by_line(live) if dialect == "swe-bench-live" else readers[parser]
    return lambda text: reader(text, dialect)
