#!/usr/bin/env bash
# Tests the adapters with the trainers' own classes. usage: run.sh VENV [CHECKOUT OF SLIME]
# No package index has slime. Without a checkout (git clone https://github.com/THUDM/slime, 0.3.1) its test is skipped with a message.
set -uo pipefail
venv=$(realpath -m "$1")
slime=$(realpath -m "${2:-none}")
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
bash setup.sh "$venv" || exit 1
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
for name in trl trl_async skyrl verl; do check "check_$name.py"; done
if [ -e "$slime/slime" ]; then
  check check_slime.py "$slime"
else
  echo 'left out: slime (pass a checkout as the second argument)'
fi
exit "$failed"
