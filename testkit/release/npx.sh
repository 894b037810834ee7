#!/usr/bin/env bash
# npx.sh MAJOR: runs `npx swefarm rollout` in a bare Debian root that has Node MAJOR and npm, until the first reward. Prints seconds and bytes.
# Environment: work, base, npm_registry, root, version of install.sh.
set -euo pipefail
cd "$root"
major=$1 bare=$work/bare-$1
. testkit/ci/fresh/base.sh
rm -rf --one-file-system "$bare"
mkdir -p "$bare"
container=$(docker create "$base" true)
docker export "$container" | tar -x -C "$bare" --exclude='dev/*'
docker rm "$container" >/dev/null
authorities "$bare"
node_and_npm "$bare" "$work/node-$major" "$major"
printf 'registry=%s/\n' "$npm_registry" >"$bare/root/.npmrc"
printf '127.0.0.1 localhost\n' >"$bare/etc/hosts"
mkdir -p "$bare/home/work" "$bare$work/dataset" "$bare$root/.swefarm"
# Python is no dependency of the package: Redis comes from PATH here.
cat >"$bare/home/work/first.sh" <<'SCRIPT'
set -eu
cd /home/work
from=$(date +%s%3N)
npx --yes "swefarm@$VERSION" --version
installed=$(date +%s%3N)
npx --yes "swefarm@$VERSION" rollout --dataset "$ROWS" --agent golden --runtime rootfs --output out.jsonl
rewarded=$(date +%s%3N)
grep -q '"reward":1' out.jsonl
bytes=$(du -sb /root/.npm/_cacache | cut -f 1) disk=$(du -sb /root/.npm/_npx | cut -f 1)
printf 'Node %s: installed after %s ms, first reward after %s ms more; %s bytes fetched, %s bytes on disk\n' \
  "$(node --version)" $((installed - from)) $((rewarded - installed)) "$bytes" "$disk"
SCRIPT
variables=("HOME=/root" "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" "VERSION=$version" "ROWS=$work/dataset/instances.rootfs.jsonl")
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount --pid --ipc --fork --kill-child -- bash -c '
  set -e
  bare=$1 work=$2 root=$3
  shift 3
  mount --make-rprivate /
  mount --bind "$bare" "$bare"
  mount -t proc proc "$bare/proc"
  mount -t tmpfs dev "$bare/dev"
  for name in null zero full random urandom tty; do touch "$bare/dev/$name" && mount --bind "/dev/$name" "$bare/dev/$name"; done
  mkdir -p "$bare/dev/shm" "$bare/sys" && ln -s /proc/self/fd "$bare/dev/fd"
  mount --rbind /sys "$bare/sys"
  # The rows name folders of images in the cache of the examples.
  mount --bind "$work/dataset" "$bare$work/dataset"
  mount --bind "$root/.swefarm" "$bare$root/.swefarm"
  # Sandboxes change their root, which the kernel refuses in a chroot.
  cd "$bare"
  mkdir .outside
  pivot_root . .outside
  exec chroot . /bin/bash -c "umount -l /.outside && exec env -i \"\$@\" bash /home/work/first.sh" bash "$@"
' bash "$bare" "$work" "$root" "${variables[@]}"
rm -rf --one-file-system "$bare"
