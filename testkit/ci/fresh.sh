#!/usr/bin/env bash
# `npm run ci:fresh`: runs the README's two commands on a machine that has only Debian, Node and npm. Each command starts from
# its own bare root, in its own namespaces, in a clean clone of HEAD.
# usage: fresh.sh [demo] [test] [setup]      default: demo test; setup: only the programs that setup.sh installs, each checked
# Needs root. When this script ends, also by kill -9, the kernel ends all processes inside and the janitor removes the files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. testkit/ci/fresh/base.sh
. testkit/ci/fresh/machine.sh

say() { printf 'fresh: %s\n' "$*" >&2; }
fail() {
  say "######## $*"
  exit 12
}
# The command of each step, and its time limit in minutes.
declare -A commands=([demo]='npm run demo' [test]='npm test' [setup]='bash testkit/setup/setup.sh --prove')
declare -A minutes=([demo]=20 [test]=80 [setup]=15)

[ $# -gt 0 ] || set -- demo test
for step in "$@"; do
  [ -n "${commands[$step]:-}" ] || fail "unknown step: $step (usage: fresh.sh [demo] [test] [setup])"
done
[ "$(id -u)" = 0 ] || fail 'NOTHING WAS CHECKED: a bare Debian root and namespaces need root; run this as root'
[ -z "$(git status --porcelain)" ] || say 'uncommitted changes are not in the clone'
bash testkit/setup/setup.sh fresh || fail 'NOTHING WAS CHECKED: without these programs there is no bare root'
export PATH="$PWD/node_modules/.bin:$PATH"

# The file system must not be in memory, because engines put overlays on it.
parent=${TMPDIR:-/var/tmp}
for lock in "$parent"/swefarm-fresh.*/lock; do
  if [ -e "$lock" ] && flock --nonblock "$lock" true; then sweep "${lock%/lock}"; fi
done
folder=$(mktemp -d "$parent/swefarm-fresh.XXXXXX")
exec 9>"$folder/lock"
flock 9
# Every process of the run inherits the lock. The janitor has its own session, so that signals to this script do not end it.
# shellcheck disable=SC2016 # expanded by the janitor
setsid bash -c '. testkit/ci/fresh/machine.sh; flock "$1/lock" true; sweep "$1"' janitor "$folder" 9>&- </dev/null >/dev/null 2>&1 &
janitor=$!
running='' connected=''
end() {
  trap - EXIT INT TERM HUP
  # Ends the process that contains the run, and with it all processes inside, and the process that provides its network.
  # shellcheck disable=SC2086
  { kill -KILL $running $connected && wait $running $connected; } 2>/dev/null || true
  exec 9>&-
  wait "$janitor" || true
}
trap end EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0 closing=''
from=$SECONDS
base "$folder"
say "a bare Debian with Node $(chroot "$folder/base" node --version) and npm $(chroot "$folder/base" npm --version): $((SECONDS - from)) s"
for step in "$@"; do
  command=${commands[$step]} from=$SECONDS status=0
  printf '\n== %s, from nothing\n' "$command"
  run_inside "$folder" "$step" "${minutes[$step]}" "$command" || status=$?
  seconds=$((SECONDS - from))
  case $status in
    0) passed=$((passed + 1)) word=ok ;;
    124 | 137) failed=$((failed + 1)) word="FAIL (still running after ${minutes[$step]} minutes)" ;;
    *) failed=$((failed + 1)) word="FAIL (exit $status)" ;;
  esac
  closing+=$(printf '\n== %s: %s after %s s; its last lines:\n%s' "$command" "$word" "$seconds" "$(tail -n 25 "$folder/$step.log")")$'\n'
  rm -rf --one-file-system "${folder:?}/$step"
done
printf '%s\n%s passed, %s failed\n' "$closing" "$passed" "$failed"
[ "$failed" = 0 ]
