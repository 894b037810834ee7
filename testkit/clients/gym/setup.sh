#!/usr/bin/env bash
# Installs the unmodified collector of NeMo Gym from PyPI in a venv (1.4 GB, about a minute).
# usage: setup.sh VENV
# nemo-gym 0.7.0 requires Python >= 3.13.14 but works on 3.13.0, hence --ignore-requires-python.
set -euo pipefail
venv=$1
[ -e "$venv/complete" ] && exit 0
python=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path '*/3.13*/bin/python' 2>/dev/null | sort | tail -1)
python=${SWEFARM_GYM_PYTHON:-${python:-python3.13}}
command -v "$python" >/dev/null || { echo "setup: nemo-gym needs Python 3.13 (SWEFARM_GYM_PYTHON=…)" >&2; exit 1; }
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/pip" install -q --ignore-requires-python nemo-gym==0.7.0
touch "$venv/complete"
