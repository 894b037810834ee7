#!/usr/bin/env bash
# Installs TRL, SkyRL, verl, verifiers, OpenRLHF, Tinker and AReaL for tests on a machine without a GPU: about 2 minutes, 2.3 GB. Needs Python 3.12, gcc and binutils.
# usage: setup.sh VENV
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
if "$venv/bin/python" -c 'import torch, trl, skyrl, verl, transfer_queue, verifiers, openrlhf, tinker, chz, areal' >/dev/null 2>&1; then exit 0; fi

python=
for candidate in "${SWEFARM_TRAINERS_PYTHON:-}" python3.12 python3 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12; do
  if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo 'setup: SkyRL and verl want Python 3.12; set SWEFARM_TRAINERS_PYTHON to one' >&2; exit 1; }

"$python" -m venv "$venv"
"$venv/bin/pip" install -q uv
overrides=$(mktemp)
trap 'rm -f "$overrides"' EXIT
# torch is installed without its CUDA libraries. cudastubs.sh defines the symbols that torch needs to load.
echo 'torch==2.13.0' >"$overrides"
for name in torchvision triton cuda-toolkit cuda-bindings nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13; do
  echo "$name; sys_platform == 'never'" >>"$overrides"
done
install() { UV_LINK_MODE=${UV_LINK_MODE:-copy} "$venv/bin/uv" pip install -q --python "$venv/bin/python" "$@"; }
install --override "$overrides" -r "$here/requirements.txt"
install --no-deps -r "$here/requirements-nodeps.txt"
bash "$here/../verl/cudastubs.sh" "$venv"
"$venv/bin/python" -c 'import torch, trl, verl; assert torch.ones(2).sum() == 2; print("torch", torch.__version__, "trl", trl.__version__, "verl", verl.__version__)'
