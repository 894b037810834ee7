#!/usr/bin/env bash
# Installs the programs that read files of `swefarm export`, from PyPI, in three venvs (1.9 GB, about six minutes).
# usage: setup.sh FOLDER
# SWE-agent is not installed: PyPI has only its version 0.0.1 of 2024, which does not read files of versions since 1.0.
set -euo pipefail
folder=$1
. "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
python=$(python_of 3.11 3.12 3.13 3.10)
install "$folder/readers" "$python" sb-cli==0.1.5 pyarrow pandas datasets mini-swe-agent==2.4.6
# The wheel of swesmith lacks the configuration that it reads at import.
install "$folder/swesmith" "$python" swesmith==0.0.9 swebench==4.1.0 pyyaml rich sparklines tqdm numpy safetensors
agent=$("$folder/swesmith/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/agent
mkdir -p "$agent"
printf 'agent:\n  templates:\n    system_template: work with bash and submit\n' >"$agent/swesmith_infer.yaml"
# Harbor and OpenHands need Python 3.12. Their readers of trajectories need few of their dependencies, so most are not installed.
python=$(python_of 3.12 3.13)
install "$folder/agents" "$python" litellm==1.77.7 'pydantic>=2.12' termcolor 'python-json-logger<4' toml tenacity google-cloud-storage boto3 minio httpx pyyaml \
  jinja2 gitpython fastapi docker python-socketio uvicorn deprecated json_repair
"$folder/agents/bin/pip" install -q --no-deps harbor==0.25.0 openhands-ai==0.62.0
