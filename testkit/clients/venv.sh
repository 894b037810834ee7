#!/usr/bin/env bash
# Defines functions that find Python and install programs from PyPI. Scripts of the clients source this file.
clients=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

python_of() { # python_of VERSION...: prints an interpreter of the first of these versions that PATH or pyenv has
  local version candidate
  for version in "$@"; do
    for candidate in "python$version" python3 "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if "$candidate" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])' "$version" 2>/dev/null; then
        echo "$candidate"
        return
      fi
    done
  done
  echo "setup: found no Python $* in PATH or pyenv: install one of these versions" >&2
  return 1
}

install() { # install VENV PYTHON PACKAGE...: makes a venv with these packages, unless an earlier call has finished it
  [ -e "$1/complete" ] && return
  rm -rf "$1"
  "$2" -m venv "$1"
  "$1/bin/pip" install -q "${@:3}"
  touch "$1/complete"
}

# PyPI's torch requires gigabytes of CUDA libraries, which a machine without a GPU never calls. cudastubs.sh replaces them.
install_torch() { # install_torch VENV PYTHON ARGUMENT...: makes a venv with torch and the packages that the arguments of `uv pip install` name
  local venv=$1
  "$2" -m venv "$venv"
  "$venv/bin/pip" install -q uv
  { echo 'torch==2.13.0'
    printf "%s; sys_platform == 'never'\n" torchaudio torchvision torchcodec triton cuda-toolkit cuda-bindings \
      nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13
  } >"$venv/overrides.txt"
  "$venv/bin/uv" pip install -q --link-mode copy --python "$venv/bin/python" --override "$venv/overrides.txt" "${@:3}" \
    torch==2.13.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 nvidia-cufile==1.15.1.6
  bash "$clients/cudastubs.sh" "$venv"
  CUDA_VISIBLE_DEVICES='' "$venv/bin/python" -c 'import torch; assert torch.ones(2).sum() == 2'
}
