#!/usr/bin/env bash
# The programs that read what `swefarm export` writes, from PyPI, in two venvs (1.6 GB, about five minutes).
# usage: setup.sh FOLDER
set -euo pipefail
folder=$1
mkdir -p "$folder"
python=${SWEFARM_TRAINING_PYTHON:-python3}
make() {
  local venv=$folder/$1
  shift
  [ -e "$venv/complete" ] && return
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install -q "$@"
  touch "$venv/complete"
}
make readers sb-cli==0.1.5 pyarrow pandas datasets mini-swe-agent==2.4.6
# Its wheel lacks the configuration that its transform reads at import.
make swesmith swesmith==0.0.9 swebench==4.1.0 pyyaml rich sparklines tqdm numpy safetensors
agent=$("$folder/swesmith/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/agent
mkdir -p "$agent"
printf 'agent:\n  templates:\n    system_template: work with bash and submit\n' >"$agent/swesmith_infer.yaml"
