#!/usr/bin/env bash
# Installs the unmodified collector of NeMo Gym from PyPI in a venv (1.4 GB, about a minute).
# usage: setup.sh VENV
# nemo-gym 0.7.0 requires Python >= 3.13.14 but works on 3.13.0, hence --ignore-requires-python.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
python=$(python_of 3.13)
install "$1" "$python" --ignore-requires-python nemo-gym==0.7.0
