#!/usr/bin/env bash
# `npm run test:chaos -- --seed N [--rollouts 300] [--workers 3] [--short]`: needs root and Docker; installs what is missing.
# The run has namespaces of its own, so the kernel ends all its processes and removes its mounts when this script ends, also by
# kill -9. Only a folder remains, which the next run finds unlocked and removes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ $$ = 1 ]; then # inside
  # The run's engine must not use the machine's containerd, and the sockets of its shims must not appear on the machine.
  mkdir -p /run/containerd
  mount -t tmpfs swefarm-chaos /run/containerd
  # This shell does not exec node: as the first process of the namespace it must reap orphans.
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
# Every process of the run inherits the lock, so the lock is free when the last process has ended.
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
