#!/usr/bin/env bash
# Runs a worker on one node. workers.sh starts this script, which copies the bundle to a local disk, prepares the node, and removes the
# files at the end. usage: node.sh RESTART
set -uo pipefail

node=${SLURMD_NODENAME:-$(hostname)}
job=${SLURM_JOB_ID:?}
restart=${1:?}
home=${SWEFARM_SLURM_HOME:?}
dir=${SWEFARM_SLURM_DIR:?}
state=$dir/jobs/$job

say() { printf 'swefarm on %s: %s\n' "$node" "$*" >&2; }
fail() { say "$*"; exit 12; }

[ -r "$state" ] || fail "$dir is not the folder that the first node sees: set SWEFARM_SLURM_DIR to one on the shared file system"

# --- A folder on a local disk, after the removal of folders whose owner process is dead
root=${SWEFARM_SLURM_LOCAL:-${SLURM_TMPDIR:-${TMPDIR:-/tmp}}}/swefarm-$(id -u)
(umask 077 && mkdir -p "$root") 2>/dev/null
# A link is refused, because it could point to a folder of another user.
if [ ! -O "$root" ] || [ -L "$root" ] || ! chmod 700 "$root"; then
  fail "$root cannot be made, or is not ours ($(stat -c '%F of %U' "$root" 2>&1)): set SWEFARM_SLURM_LOCAL to a folder on a local disk"
fi
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
discard() {
  chmod -R u+rwX "$1" 2>/dev/null
  rm -rf "$1" 2>/dev/null || say "$1 could not be removed"
}
sweep() {
  local folder pid since newest
  for folder in "$root"/*-"$node"; do
    [ -r "$folder/owner" ] || continue
    read -r pid since <"$folder/owner"
    [ "$(started "$pid")" = "$since" ] || discard "$folder"
  done
  # The data of a crashed Redis stay valid until another node leads.
  newest=$(find "$dir/redis/lead" -name 'epoch-*.json' 2>/dev/null | sed 's/.*epoch-//; s/[.]json//' | sort -n | tail -n 1)
  for folder in "$root/redis-$node"-*; do
    [ -r "$folder/epoch" ] && [ "$(<"$folder/epoch")" -lt "${newest:-0}" ] && discard "$folder"
  done
}
sweep
mine=$root/$job.$restart-$node
mkdir -p "$mine/tmp" "$mine/scratch" || fail "$mine cannot be made: is the disk full?"
printf '%s %s\n' $$ "$(started $$)" >"$mine/owner"
worker=
# shellcheck disable=SC2317 # called by the trap
tidy() {
  discard "$mine"
  rmdir "$root" 2>/dev/null
}
trap tidy EXIT
stopping=
stop() {
  [ -z "$stopping" ] || return 0
  stopping=1
  [ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null
}
trap stop TERM INT

need=$(($(du -sk "$home/bin/node" | cut -f 1) * 2))
free=$(df -Pk "$mine" | awk 'NR == 2 { print $4 }')
[ "${free:-0}" -gt "$need" ] || fail "$root has ${free:-0} KiB free, the farm needs $need: set SWEFARM_SLURM_LOCAL to a larger disk"
cp -r "$home/." "$mine/bundle" || fail "the bundle could not be copied from $home to $mine"

# --- Resources of the job on this node
mib=${SLURM_MEM_PER_NODE:-0}
[ "$mib" != 0 ] || mib=$((${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_ON_NODE:-1}))
[ "$mib" != 0 ] || mib=$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) / 1024))
own=${SWEFARM_SLURM_RESERVE_MIB:-768}
if [ -z "${SWEFARM_CONCURRENCY:-}" ] && [ -z "${SWEFARM_NODE_MEMORY_BYTES:-}" ] && [ $((mib - own)) -lt 2048 ]; then
  fail "too little memory: the job has $mib MiB here, the worker needs $own and a rollout 2048: set --mem, or SWEFARM_CONCURRENCY"
fi
[ $((mib - own)) -gt 256 ] || fail "too little memory: the job has $mib MiB here, the worker alone needs $own: set --mem"
export SWEFARM_NODE_CPUS=${SWEFARM_NODE_CPUS:-${SLURM_CPUS_ON_NODE:-1}}
export SWEFARM_NODE_MEMORY_BYTES=${SWEFARM_NODE_MEMORY_BYTES:-$(((mib - own) * 1048576))}
export TMPDIR=$mine/tmp SWEFARM_SCRATCH_DIR=$mine/scratch SWEFARM_STATE_DIR=$mine/state
export SWEFARM_IMAGES_DIR=${SWEFARM_IMAGES_DIR:-$mine/images}
# Artifacts are on the shared file system, so that Redis needs little memory. The grace period is shorter than SLURM's KillWait.
export SWEFARM_ARTIFACTS=${SWEFARM_ARTIFACTS:-dir:$dir/artifacts}
export SWEFARM_DRAIN_GRACE_SECONDS=${SWEFARM_DRAIN_GRACE_SECONDS:-15}
export SWEFARM_NODE=$node
# The gateway's /sd lists the address of the metrics: the name of the node if it resolves, else the worker's default.
export SWEFARM_METRICS_PORT=${SWEFARM_METRICS_PORT:-auto} SWEFARM_METRICS_HOST=${SWEFARM_METRICS_HOST:-0.0.0.0}
if [ -z "${SWEFARM_METRICS_ADDRESS:-}" ] && getent hosts "$node" >/dev/null 2>&1; then export SWEFARM_METRICS_ADDRESS=$node; fi

# --- Preparation
setup=${SWEFARM_SLURM_SETUP-}
case ${SWEFARM_RUNTIME:-auto} in apptainer) setup=${SWEFARM_SLURM_SETUP-$mine/bundle/slurm/setup-apptainer.sh} ;; esac
if [ -n "$setup" ]; then
  bash "$setup"
  code=$?
  # Exit code 12: the setup has printed what is missing.
  [ "$code" != 12 ] || exit 12
  [ "$code" = 0 ] || fail "the setup of this node ended with $code: $setup"
fi

# --- The worker: it is restarted when it dies, and drained when the state file of the job requests this
names=0
launch() {
  names=$((names + 1))
  # Worker ids are unique, because a lost copy of this job may still run on the same node.
  SWEFARM_WORKER_ID=$job.$restart-$node.$names "$mine/bundle/bin/swefarm-worker" run &
  worker=$!
}
ended() { ! kill -0 "$worker" 2>/dev/null || grep -q '^[0-9]* (.*) Z' "/proc/$worker/stat" 2>/dev/null; }
last='' still=0
watch() { # sets `stopping` when the worker of this node must stop
  local word='' what=''
  read -r word what _ <"$state" 2>/dev/null || return 0
  if [ "$word" -gt "$restart" ] 2>/dev/null; then
    say "job $job was started again elsewhere; draining"
    stop
  elif [ "$what" = stop ]; then
    stop
  fi
}
unmoved() { # stops when the first node has not changed the state file for long: the job is over
  local now
  now=$(cat "$state" 2>/dev/null)
  if [ "$now" = "$last" ]; then still=$((still + 2)); else still=0 last=$now; fi
  if [ "$still" -ge "${SWEFARM_SLURM_ORPHAN_SECONDS:-120}" ] && [ -z "$stopping" ]; then
    say "the first node has not changed the state file for $still s; draining"
    stop
  fi
}

code=0 tries=0
while [ -z "$stopping" ]; do
  launch
  since=$SECONDS
  while ! ended; do
    sleep 2 &
    wait $! 2>/dev/null
    [ -n "$stopping" ] || watch
    unmoved
  done
  wait "$worker"
  code=$?
  [ -z "$stopping" ] || break
  # Exit code 0: the worker has drained. Exit codes 2 and 12: a restart would fail in the same way.
  case $code in 0 | 2 | 12) break ;; esac
  [ $((SECONDS - since)) -lt 60 ] || tries=0
  tries=$((tries + 1))
  [ "$tries" -le 5 ] || break
  say "the worker ended with $code; starting it again"
  sleep $((tries * 2)) &
  wait $! 2>/dev/null
done
[ -z "$stopping" ] || code=0
exit "$code"
