#!/usr/bin/env bash
# The first process of the bare machine: sets up mounts, root and network, then runs the command as root.
# usage: inside.sh ROOT FOLDER COMMAND own|shared      by fresh.sh, in namespaces of its own
set -euo pipefail
root=$1 folder=$2 command=$3 network=$4

# Enters new control groups without outside processes, because a group with processes cannot distribute resources to groups below it.
if [ -z "${SWEFARM_FRESH_GROUPS:-}" ]; then
  . testkit/ci/fresh/machine.sh
  enter_groups "$(basename "$folder")"
  SWEFARM_FRESH_GROUPS=own exec unshare --cgroup -- bash "$0" "$@"
fi

# The pid as the machine outside sees it, because its /proc is still mounted.
read -r self _ </proc/self/stat
echo "$self" >"$folder/first"

environment=(HOME=/root USER=root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while IFS= read -r -d '' setting; do environment+=("$setting"); done <"$folder/settings"

mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t devtmpfs devtmpfs dev
mkdir -p dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run

# Mounts the control groups of this namespace at the usual paths.
hierarchies() { cut -d: -f2 /proc/self/cgroup; }
if [ "$(hierarchies)" = '' ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  # Only a group without processes of its own can distribute its resources.
  mkdir sys/fs/cgroup/init
  echo 1 >sys/fs/cgroup/init/cgroup.procs
  sed 's/ / +/g; s/^/+/' sys/fs/cgroup/cgroup.controllers >sys/fs/cgroup/cgroup.subtree_control
else
  mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
  hierarchies | while read -r controllers; do
    place=sys/fs/cgroup/${controllers#name=}
    [ -n "$controllers" ] || place=sys/fs/cgroup/unified
    mkdir "$place"
    if [ -n "$controllers" ]; then mount -t cgroup -o "$controllers" cgroup "$place"; else mount -t cgroup2 cgroup2 "$place"; fi
  done
fi

hostname fresh
# slirp4netns, started outside, adds the device tap0 when it knows the pid of this process.
if [ "$network" = own ]; then
  for _ in {1..200}; do
    [ -e sys/class/net/tap0 ] && break
    sleep 0.1
  done
  [ -e sys/class/net/tap0 ] || echo '######## no network came from outside' >&2
fi
mkdir .outside
pivot_root . .outside
exec chroot . /bin/bash -c '
  umount -l /.outside && rmdir /.outside
  cd /home/swefarm
  env -i "$@"
  exit $?
' bash "${environment[@]}" bash -c "$command"
