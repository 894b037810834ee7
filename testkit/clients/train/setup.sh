#!/usr/bin/env bash
# Installs torch and transformers for examples/train on a machine without a GPU (downloads 560 MB). Needs Python 3.11 to 3.13, gcc, binutils
# and a package index. usage: setup.sh VENV; an environment that already has both (testkit/clients/trainers/setup.sh) stays unchanged.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
if CUDA_VISIBLE_DEVICES='' "$venv/bin/python" -c 'import torch, transformers' >/dev/null 2>&1; then exit 0; fi

python=
for candidate in python3.12 python3.13 python3.11 python3; do
  if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo 'setup: torch 2.13 needs Python 3.11, 3.12 or 3.13 in PATH' >&2; exit 1; }

"$python" -m venv "$venv"
"$venv/bin/pip" install -q uv
# PyPI's torch requires gigabytes of CUDA libraries. Stubs replace them (testkit/clients/vllm/stubs.sh).
printf "%s; sys_platform == 'never'\n" triton cuda-toolkit cuda-bindings nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 \
  nvidia-nvshmem-cu13 >"$venv/overrides.txt"
"$venv/bin/uv" pip install -q --python "$venv/bin/python" --override "$venv/overrides.txt" \
  torch==2.13.0 transformers==5.16.1 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 nvidia-cufile==1.15.1.6
bash "$here/../vllm/stubs.sh" "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
CUDA_VISIBLE_DEVICES='' "$venv/bin/python" -c 'import torch; assert torch.ones(2).sum() == 2'
