#!/usr/bin/env bash
# Installs TRL, SkyRL, verl, verifiers, OpenRLHF, Tinker and AReaL for tests on a machine without a GPU (about 2 minutes, 2.3 GB). Needs
# Python 3.12, gcc and binutils.
# usage: setup.sh VENV
set -euo pipefail
venv=$1
if "$venv/bin/python" -c '
import importlib.util, sys
names = "torch trl skyrl verl transfer_queue verifiers openrlhf tinker tinker_cookbook chz areal termcolor".split()
sys.exit(not all(map(importlib.util.find_spec, names)))' >/dev/null 2>&1; then exit 0; fi
. "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
python=$(python_of 3.12)
install_torch "$venv" "$python" -r "$clients/trainers/requirements.txt"
"$venv/bin/pip" install -q --no-deps -r "$clients/trainers/requirements-nodeps.txt"
"$venv/bin/python" -c 'import torch, trl, verl; print("torch", torch.__version__, "trl", trl.__version__, "verl", verl.__version__)'
