#!/usr/bin/env bash
# Installs torch and transformers for examples/train on a machine without a GPU (downloads 560 MB). Needs Python 3.11 to 3.13, gcc, binutils
# and a package index. usage: setup.sh VENV; an environment that already has both (testkit/clients/trainers/setup.sh) stays unchanged.
set -euo pipefail
if CUDA_VISIBLE_DEVICES='' "$1/bin/python" -c 'import torch, transformers' >/dev/null 2>&1; then exit 0; fi
. "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
python=$(python_of 3.12 3.13 3.11)
install_torch "$1" "$python" transformers==5.16.1
