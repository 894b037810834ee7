#!/usr/bin/env bash
# stubs.sh SITE_PACKAGES: PyPI's torch links to 3 GB of CUDA libraries that a server on CPU never calls. This script replaces them
# with libraries of functions that abort. Never use this environment on a GPU.
set -euo pipefail
lib=$1/torch/lib

wanted() { # wanted PATTERN: the undefined symbols of torch that match
  for file in libtorch_cuda.so libtorch_python.so libtorch_cuda_linalg.so libtorch_nvshmem.so; do
    [ ! -e "$lib/$file" ] || readelf --dyn-syms -W "$lib/$file"
  done | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' | grep -E "$1" | sort -u || true
}

stub() { # stub SONAME PATTERN
  { printf '#include <stdlib.h>\nint stub_%s;\n' "${1//[^a-zA-Z0-9]/_}"
    wanted "$2" | sed 's/.*/void &(void) { abort(); }/'
  } | gcc -w -x c -shared -fPIC -Wl,-soname,"$1" -o "$lib/$1" -
}

stub libcublas.so.13 '^cublas[^L]'
stub libcublasLt.so.13 '^cublasLt'
stub libcudnn.so.9 '^cudnn'
stub libcufft.so.12 '^cufft'
stub libcurand.so.10 '^curand'
stub libcusparse.so.12 '^cusparse[^L]'
stub libcusparseLt.so.0 '^cusparseLt'
stub libnccl.so.2 '^p?nccl'
stub libnvrtc.so.13 '^nvrtc'
stub libnvshmem_host.so.3 '^nvshmem'
