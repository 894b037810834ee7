#!/usr/bin/env bash
# Installs the loops that run outside of the farm from PyPI, in venvs: mini-swe-agent with SWE-ReX and the dependencies of SWE-agent
# (0.9 GB), OpenHands SDK (0.75 GB). NeMo Gym's venv comes from ../gym/setup.sh.
# usage: setup.sh VENVS
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
python=$(python_of 3.11)
install "$1/mini" "$python" mini-swe-agent==2.4.6 'litellm<1.106' swe-rex==1.4.0 \
  datasets ruamel.yaml simple-parsing rich-argparse pydantic_settings GitPython ghapi flask flask-cors flask-socketio unidiff
python=$(python_of 3.12)
install "$1/openhands" "$python" openhands-sdk==1.57.0 openhands-tools==1.57.0
