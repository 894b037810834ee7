#!/usr/bin/env bash
# Tests the adapters with the trainers' own classes: the contract under scripted faults, and two steps on a real farm with rootfs sandboxes.
# usage: run.sh VENV [CHECKOUT...]
# No package index has slime (THUDM/slime, 0.3.1), rLLM (rllm-org/rllm, 9beb6e0f) or prime-rl (PrimeIntellect-ai/prime-rl, 559b4477).
# Without a checkout, the script skips the tests of slime and rLLM with a message. Without prime-rl, verifiers' own code reads the traces.
set -uo pipefail
venv=$(realpath -m "$1")
slime=
rllm=
prime=
for checkout in "${@:2}"; do
  if [ -e "$checkout/slime" ]; then slime=$(realpath "$checkout"); fi
  if [ -e "$checkout/rllm/engine" ]; then rllm=$(realpath "$checkout"); fi
  if [ -e "$checkout/src/prime_rl" ]; then prime=$(realpath "$checkout"); fi
done
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
root=$(realpath ../../..)
bash setup.sh "$venv" || exit 1
if [ -z "${SWEFARM_TEST_FARM:-}" ]; then
  examples=cpburnz__pathspec-0.10.2,r1chardj0n3s__parse-1.20.2
  node "$root/testkit/src/examples/build.ts" --ids "$examples" --for rootfs --host --out "$root/.swefarm/train" || exit 1
  exec "$venv/bin/python" realfarm.py "$root/.swefarm/train/instances.jsonl" bash run.sh "$venv" ${slime:+"$slime"} ${rllm:+"$rllm"} ${prime:+"$prime"}
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
check() { # check FILE [ARGUMENT]: runs one test; prints its result, or the end of its output if it fails
  if "$venv/bin/python" "$@" >"$log" 2>&1; then
    grep '^ok ' "$log"
  else
    tail -n 40 "$log"
    failed=1
  fi
}
for name in trl trl_async skyrl verl openrlhf tinker areal; do check "check_$name.py"; done
check check_verifiers.py ${prime:+"$prime"}
of_checkout() { # of_checkout NAME FOLDER: runs the test of a trainer that comes as a checkout
  if [ -n "$2" ]; then check "check_$1.py" "$2"; else echo "left out: $1 (pass a checkout)"; fi
}
of_checkout slime "$slime"
of_checkout rllm "$rllm"
exit "$failed"
