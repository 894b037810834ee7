#!/usr/bin/env bash
# Installs the loops that run outside of the farm from PyPI, in venvs: mini-swe-agent with SWE-ReX and the dependencies of SWE-agent
# (0.9 GB), OpenHands SDK (0.75 GB). NeMo Gym's venv comes from ../gym/setup.sh.
# usage: setup.sh VENVS
set -euo pipefail
venvs=$1
python_of() { # python_of 3.12: the newest interpreter of this version
  local found
  found=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path "*/$1*/bin/python" 2>/dev/null | sort | tail -1)
  found=${found:-python$1}
  command -v "$found" >/dev/null || { echo "setup: $found is missing" >&2; exit 1; }
  echo "$found"
}
install() { # install NAME VERSION PACKAGE...
  local venv=$venvs/$1 python
  [ -e "$venv/complete" ] && return
  python=$(python_of "$2")
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install -q "${@:3}"
  touch "$venv/complete"
}
install mini 3.11 mini-swe-agent==2.4.6 'litellm<1.106' swe-rex==1.4.0 \
  datasets ruamel.yaml simple-parsing rich-argparse pydantic_settings GitPython ghapi flask flask-cors flask-socketio unidiff
install openhands 3.12 openhands-sdk==1.57.0 openhands-tools==1.57.0
