#!/usr/bin/env bash
# build.sh [FOLDER]: builds wheel and sdist of the Python package with the farm's version in FOLDER (default: dist/ of the repository).
# It builds from a copy, because setuptools writes next to the sources. Needs python3 and a package index.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${1:-$here/../../dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
cp -r "$here"/pyproject.toml "$here"/swefarm* "$work/source/"
find "$work/source" -name __pycache__ -prune -exec rm -rf {} +
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q build
"$work/venv/bin/python" -m build --outdir "$out" "$work/source" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
ls "$out"/swefarm-*.whl "$out"/swefarm-*.tar.gz
