#!/usr/bin/env bash
# `npm run test:chaos -- --seed N [--rollouts 300] [--workers 3] [--short]`: needs root and Docker; installs what is missing.
# It runs in namespaces of its own: whatever ends this script, kill -9 too, the kernel then ends every process that the run
# started and takes its mounts away. What is left is a folder, which the next run finds unlocked and removes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ $$ = 1 ]; then # inside
  # The machine's containerd is not for our engine, nor are its shims' sockets for the machine.
  mkdir -p /run/containerd
  mount -t tmpfs swefarm-chaos /run/containerd
  # This shell stays: the first process of a namespace is the one that takes orphans in.
  node testkit/chaos/main.ts "$@"
  exit
fi

bash testkit/setup/setup.sh redis rootfs docker faketime
export PATH="$PWD/node_modules/.bin:$PATH"
base=${TMPDIR:-/tmp}
for lock in "$base"/swefarm-chaos.*/lock; do
  if [ -e "$lock" ]; then flock --nonblock "$lock" rm -rf "${lock%/lock}" || true; fi
done
folder=$(mktemp -d "$base/swefarm-chaos.XXXXXX")
exec 9>"$folder/lock"
flock 9
# Every process of the run has the lock from us, and the last one gives it back.
tidy() {
  exec 9>&-
  flock --timeout 30 "$folder/lock" rm -rf "$folder"
}
trap tidy EXIT
TMPDIR=$folder setpriv --pdeathsig KILL -- \
  unshare --mount --pid --fork --kill-child --mount-proc -- bash testkit/chaos/chaos.sh "$@" &
run=$!
trap 'kill -KILL $run; exit 130' INT TERM HUP
wait $run
