#!/usr/bin/env bash
# Installs verl for tests on a machine without a GPU: about 2 minutes and 2.3 GB. Needs Python 3.10 to 3.12, gcc, binutils.
# usage: setup.sh VENV
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
if "$venv/bin/python" -c 'import torch, verl' >/dev/null 2>&1; then exit 0; fi

python=
for candidate in "${SWEFARM_VERL_PYTHON:-}" python3 python3.12 python3.11 python3.10; do
  if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo 'setup: verl wants Python 3.10, 3.11 or 3.12; set SWEFARM_VERL_PYTHON to one' >&2; exit 1; }

"$python" -m venv "$venv"
"$venv/bin/pip" install -q -r "$here/requirements.txt"
"$venv/bin/pip" install -q --no-deps -r "$here/requirements-nodeps.txt"
bash "$here/cudastubs.sh" "$venv"
"$venv/bin/python" -c 'import torch, verl; assert torch.ones(2).sum() == 2; print("torch", torch.__version__, "verl", verl.__version__)'
