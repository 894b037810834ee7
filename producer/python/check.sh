#!/usr/bin/env bash
# check.sh [VENV]: builds the package and installs the wheel alone in a fresh environment. Runs the unit tests with every installed Python from
# 3.10 to 3.13 (PATH or pyenv), and mypy --strict, pyright and ruff from PyPI in VENV (default: a temporary environment).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../testkit/clients/venv.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=${1:-$work/tools}

bash "$here/build.sh" "$work/dist" >/dev/null
python3 -m venv "$work/fresh"
"$work/fresh/bin/pip" install -q --no-index "$work"/dist/swefarm-*.whl
(cd "$work" && "$work/fresh/bin/python" -c '
import importlib.metadata, swefarm
assert all(hasattr(swefarm, name) for name in swefarm.__all__)
print("wheel:", importlib.metadata.version("swefarm"))')

tested=0
for version in 3.10 3.11 3.12 3.13; do
  python=$(python_of "$version" 2>/dev/null) || { echo "Python $version: not found, the tests did not run with it"; continue; }
  (cd "$here" && PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 "$python" -m unittest discover -s tests -t tests >"$work/log" 2>&1) ||
    { cat "$work/log"; exit 1; }
  echo "Python $version: $(grep '^Ran' "$work/log")"
  tested=$((tested + 1))
done
[ "$tested" -gt 0 ]

[ -x "$tools/bin/mypy" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install -q mypy pyright ruff numpy; }
cd "$here"
PYTHONPATH=.:tests PYTHONDONTWRITEBYTECODE=1 "$tools/bin/python" -m unittest -q with_numpy
"$tools/bin/ruff" check -q swefarm swefarm_env
for version in 3.10 3.13; do
  "$tools/bin/mypy" --python-version "$version" swefarm/*.py swefarm/trainers/*.py
done
"$tools/bin/pyright" --pythonpath "$tools/bin/python" swefarm/*.py swefarm/trainers/*.py
