#!/usr/bin/env bash
# PyPI's torch links to CUDA libraries, which must exist to load torch but are never called without a GPU. One library defines
# every missing symbol as abort(); the others are empty libraries with the right names. libcudart and libcupti are the real
# libraries, because torch calls them while it loads. usage: cudastubs.sh VENV
set -euo pipefail
packages=$(realpath "$1"/lib/python3.*/site-packages)
lib=$packages/torch/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in libcudart libcupti; do
  real=$(find "$packages/nvidia" -name "$name.so.*" | head -1)
  ln -sf "$real" "$lib/$(basename "$real")"
done
defined_in() { nm -D --defined-only "$1" 2>/dev/null | awk '{ print $NF }' | sed 's/@.*//'; }

missing=$(for file in "$lib"/*.so; do objdump -p "$file" | awk '/NEEDED/ { print $2 }'; done | sort -u |
  grep -E '^lib(cu|nccl|nvrtc|nvshmem)' | grep -vE '^(libcudart|libcupti|libcuda)\.so')
for file in "$lib"/*.so; do nm -D --undefined-only "$file" | awk '$1 == "U" { print $2 }'; done |
  sed 's/@.*//' | sort -u >"$work/used"
{
  for file in "$lib"/*.so "$lib"/libgomp.so.1 "$lib"/libcudart.so.* "$lib"/libcupti.so.*; do defined_in "$file"; done
  ldconfig -p | awk '/x86-64/ && /(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so/ { print $NF }' |
    while read -r file; do defined_in "$file"; done
} | sort -u >"$work/defined"
comm -23 "$work/used" "$work/defined" | { grep -E '^(cu|nccl|nv)' || true; } >"$work/stubs"

{
  echo 'extern void abort(void);'
  sed 's/.*/void &(void) { abort(); }/' "$work/stubs"
} >"$work/stubs.c"
source=$work/stubs.c
for name in $missing; do
  [ -e "$lib/$name" ] && continue
  gcc -w -O1 -shared -Wl,-soname,"$name" -o "$lib/$name" "$source"
  source=$work/empty.c
  : >"$source"
done
echo "$(wc -l <"$work/stubs") symbols stubbed"
