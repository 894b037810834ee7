#!/usr/bin/env bash
# Installs the programs that read files of `swefarm export`, from PyPI, in three venvs (1.9 GB, about six minutes).
# usage: setup.sh FOLDER
# SWE-agent is not installed: PyPI has only its version 0.0.1 of 2024, which does not read files of versions since 1.0.
set -euo pipefail
folder=$1
mkdir -p "$folder"
python=${SWEFARM_TRAINING_PYTHON:-python3}
make() { # make NAME PACKAGE...: the packages of `bare`, if any, come without what they ask for
  local venv=$folder/$1
  shift
  [ -e "$venv/complete" ] && return
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install -q "$@"
  [ ${#bare[@]} = 0 ] || "$venv/bin/pip" install -q --no-deps "${bare[@]}"
  touch "$venv/complete"
}
bare=()
make readers sb-cli==0.1.5 pyarrow pandas datasets mini-swe-agent==2.4.6
# The wheel of swesmith lacks the configuration that it reads at import.
make swesmith swesmith==0.0.9 swebench==4.1.0 pyyaml rich sparklines tqdm numpy safetensors
agent=$("$folder/swesmith/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/agent
mkdir -p "$agent"
printf 'agent:\n  templates:\n    system_template: work with bash and submit\n' >"$agent/swesmith_infer.yaml"
# Harbor and OpenHands need Python 3.12. Their readers of trajectories need few of their dependencies, so most are not installed.
newer=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path '*/3.1[23]*/bin/python' 2>/dev/null | sort | head -1)
python=${SWEFARM_AGENTS_PYTHON:-${newer:-python3.12}}
command -v "$python" >/dev/null || { echo 'setup: harbor and openhands-ai need Python 3.12 (SWEFARM_AGENTS_PYTHON=…)' >&2; exit 1; }
bare=(harbor==0.25.0 openhands-ai==0.62.0)
make agents litellm==1.77.7 'pydantic>=2.12' termcolor 'python-json-logger<4' toml tenacity google-cloud-storage boto3 minio httpx pyyaml \
  jinja2 gitpython fastapi docker python-socketio uvicorn deprecated json_repair
