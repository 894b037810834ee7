#!/usr/bin/env bash
#SBATCH --job-name=swefarm
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --output=swefarm-%j.log
# Starts a farm, or adds nodes to a farm. Each node runs a worker. Unless SWEFARM_REDIS_URL or REDIS_URL is given, the first node runs
# the farm's Redis or a standby. Run this script by `sbatch slurm/workers.sh [FARM.env]`, or beside other steps inside an allocation.
# When the time ends or the job is cancelled, preempted or requeued, workers drain and files are removed. See slurm/README.md.
set -uo pipefail

say() { printf 'swefarm: %s\n' "$*" >&2; }
fail() { say "$*"; exit 12; }

# The argument names a file of settings (shell assignments), used instead of sbatch --export.
settings=${1:-${SWEFARM_SLURM_CONFIG:-}}
if [ -n "$settings" ]; then
  [ -r "$settings" ] || fail "the settings file $settings cannot be read from $(hostname): put it on the shared file system"
  set -a
  # shellcheck disable=SC1090
  . "$settings"
  set +a
fi

[ -n "${SLURM_JOB_ID:-}" ] || fail 'not inside a SLURM job: sbatch slurm/workers.sh, or run it from a job script'
job=$SLURM_JOB_ID
restart=${SLURM_RESTART_COUNT:-0}
node=${SLURMD_NODENAME:-$(hostname)}
# A task of an array may have the same id as the whole array, so `self` has the form ARRAY_TASK.
self=$job
[ -z "${SLURM_ARRAY_TASK_ID:-}" ] || self=${SLURM_ARRAY_JOB_ID:-$job}_$SLURM_ARRAY_TASK_ID

# SLURM runs a copy of this script from its spool folder; the bundle is beside the original script.
is_bundle() { [ -n "$1" ] && [ -x "$1/bin/swefarm-worker" ] && [ -r "$1/bundle-id" ]; }
home_of_bundle() {
  local candidate command
  for candidate in "${SWEFARM_SLURM_HOME:-}" "$(dirname -- "$0")/.." "${SLURM_SUBMIT_DIR:-.}" "${SLURM_SUBMIT_DIR:-.}/dist/swefarm"; do
    is_bundle "$candidate" && (cd "$candidate" && pwd) && return 0
  done
  command=$(timeout 20 scontrol show job "$job" 2>/dev/null | sed -n 's/^ *Command=//p' | head -n 1)
  candidate=$(dirname -- "${command%% *}")/..
  is_bundle "$candidate" && (cd "$candidate" && pwd)
}
home=$(home_of_bundle) ||
  fail 'no bundle found: make one with npm run bundle, copy it to the shared file system, and sbatch the slurm/workers.sh in it (or set SWEFARM_SLURM_HOME)'

dir=${SWEFARM_SLURM_DIR:-${SLURM_SUBMIT_DIR:-$PWD}/farm}
mkdir -p "$dir/jobs" 2>/dev/null
[ -w "$dir/jobs" ] ||
  fail "$dir cannot be written from $node: set SWEFARM_SLURM_DIR to a folder on the file system that all nodes share"
chmod 700 "$dir" 2>/dev/null
dir=$(cd "$dir" && pwd)
export SWEFARM_SLURM_HOME=$home SWEFARM_SLURM_DIR=$dir

# --- The state file, which nodes read every 2 s: the number of the job's start, run or stop, and a counter. Nodes stop when the file has
# a later start or stop, or no longer changes. So nodes that SLURM lost end their workers too.
state=$dir/jobs/$job
beat=0
fenced=
publish() { # publish run|stop
  local there
  there=$(cut -d ' ' -f 1 "$state" 2>/dev/null)
  if [ "${there:-0}" -gt "$restart" ] 2>/dev/null; then
    fenced=1
    return 0
  fi
  beat=$((beat + 1))
  printf '%s %s %s\n' "$restart" "$1" "$beat" >"$state.$restart.draft" && mv -f "$state.$restart.draft" "$state"
}

stopping=
trap 'stopping=1' TERM INT
# A sleep in the foreground would delay the trap.
pause() { sleep "$1" & wait $! 2>/dev/null; }
# Returns whether a child process runs. A zombie does not count as running.
running() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat" 2>/dev/null; }

# --- The farm's Redis
given=${SWEFARM_REDIS_URL:-${REDIS_URL:-}}
address=$dir/redis/address.json
leader='' gateway='' hold='' talk=''
local_root=${SWEFARM_SLURM_LOCAL:-${SLURM_TMPDIR:-${TMPDIR:-/tmp}}}/swefarm-$(id -u)

node_address() { # prints the address at which other nodes reach this node
  local found=${SWEFARM_SLURM_HOST:-}
  [ -n "$found" ] || found=$(timeout 20 scontrol show node "$node" 2>/dev/null | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p' | head -n 1)
  printf '%s' "${found:-$(hostname)}"
}

start_leader() {
  (umask 077 && mkdir -p "$local_root") 2>/dev/null
  if [ ! -O "$local_root" ] || [ -L "$local_root" ] || ! chmod 700 "$local_root"; then
    fail "$local_root on $node cannot be made, or is not ours ($(stat -c '%F of %U' "$local_root" 2>&1)): set SWEFARM_SLURM_LOCAL to a folder on a local disk"
  fi
  # The folder has a name and an owner file like the folders of node.sh, so that the next job can remove it.
  talk=$local_root/$job.$restart-lead-$node
  rm -rf "$talk"
  if ! mkdir "$talk" || ! mkfifo "$talk/stdin"; then exit 12; fi
  printf '%s %s\n' $$ "$(sed 's/.*) //' "/proc/$$/stat" | cut -d ' ' -f 20)" >"$talk/owner"
  # Redis runs until its standard input ends, which happens when this script ends, also after a kill.
  PATH=$home/bin:$PATH SWEFARM_REDIS_URL='' "$home/bin/swefarm" redis --dir "$dir/redis" \
    --local-dir "$local_root/redis-$node-$(printf %s "$dir" | cksum | cut -d ' ' -f 1)" \
    --host "$(node_address)" --node "$node" --job "$job" --port "${SWEFARM_SLURM_PORT:-0}" --standby --until-stdin-ends \
    <"$talk/stdin" >"$talk/ready" &
  leader=$!
  exec {hold}>"$talk/stdin"
}

# Starts the gateway if it is requested and not running. With the farm's own Redis, only the node of the leader runs the gateway.
start_gateway() {
  [ "${SWEFARM_SLURM_GATEWAY:-0}" != 0 ] && [ -z "$gateway" ] || return 0
  [ -n "$given" ] || [ -s "$talk/ready" ] || return 0
  mkdir -p "$dir/gateway"
  SWEFARM_REDIS_URL=${given:-file:$address} SWEFARM_STATE_DIR=$dir/gateway "$home/bin/swefarm" serve --host "$(node_address)" \
    --port "${SWEFARM_SLURM_GATEWAY_PORT:-0}" >"$dir/gateway/.address.$job" {hold}>&- &
  gateway=$!
}

# Publishes the address of a started gateway. A rename makes the file appear complete to scripts that wait for it.
told='' hopeless=''
tell_gateway() {
  if [ -n "$gateway" ] && ! running "$gateway"; then
    # Exit code 2: the port is taken or a setting is wrong, so a restart would fail in the same way.
    wait "$gateway"
    [ $? != 2 ] || hopeless=1
    gateway=''
  fi
  [ -n "$gateway" ] && [ -s "$dir/gateway/.address.$job" ] || return 0
  told=$(<"$dir/gateway/.address.$job")
  mv -f "$dir/gateway/.address.$job" "$dir/gateway/address.json"
}

end_leader() {
  if [ -n "$gateway" ]; then
    kill "$gateway" 2>/dev/null
    wait "$gateway" 2>/dev/null
    rm -f "$dir/gateway/.address.$job"
    [ "$(cat "$dir/gateway/address.json" 2>/dev/null)" != "$told" ] || rm -f "$dir/gateway/address.json"
  fi
  [ -n "$leader" ] || return 0
  exec {hold}>&-
  while running "$leader"; do wait "$leader" 2>/dev/null; done
  rm -rf "$talk"
  rmdir "$local_root" 2>/dev/null
}

if [ -z "$given" ]; then
  if [ "${SWEFARM_SLURM_LEAD:-1}" != 0 ]; then start_leader; fi
  export SWEFARM_REDIS_URL=file:$address
  unset REDIS_URL
  waited=0
  until [ -s "$address" ]; do
    if [ -n "$leader" ] && ! running "$leader"; then
      wait "$leader"
      rm -rf "$talk"
      exit 12
    fi
    [ -z "$stopping" ] || { end_leader; exit 0; }
    [ "$waited" -lt "${SWEFARM_SLURM_WAIT:-600}" ] || { end_leader; fail "no Redis leads the farm in $dir after $waited s: is the first job running? (squeue --name=swefarm)"; }
    pause 1
    waited=$((waited + 1))
  done
else
  export SWEFARM_REDIS_URL=$given
  unset REDIS_URL
  problem=$("$home/bin/swefarm" doctor --json 2>/dev/null | sed -n 's/.*"status":"fail","subject":"redis","detail":"\([^"]*\)".*/\1/p' | head -n 1)
  [ -z "$problem" ] || fail "$problem"
fi
start_gateway

# --- A worker on each node
find "$dir/jobs" -type f -mtime +7 -delete 2>/dev/null
publish run
# The step requests no GPUs and no exclusive cores or memory, so that it can run beside other steps.
nodes=${SWEFARM_SLURM_NODES:-${SLURM_JOB_NUM_NODES:-1}}
# shellcheck disable=SC2016,SC2086 # expanded on the nodes; one argument for each word
srun --overlap --gres=none --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --wait=0 \
  --cpus-per-task="${SLURM_CPUS_ON_NODE:-1}" ${SWEFARM_SLURM_SRUN:-} \
  bash -c '[ -r "$1" ] || { echo "swefarm: $1 cannot be read on $(hostname): put the bundle on the shared file system" >&2; exit 12; }
    exec bash "$1" "$2"' node "$home/slurm/node.sh" "$restart" {hold}>&- &
step=$!

while running "$step" && [ -z "$stopping$fenced$hopeless" ]; do
  pause 2
  publish run
  tell_gateway
  [ -n "$hopeless" ] || start_gateway
  # A Redis that lost the leadership exits. The script starts it again as a standby.
  if [ -n "$leader" ] && ! running "$leader" && [ -z "$stopping" ]; then
    rm -rf "$talk"
    start_leader
  fi
done

# --- The end: workers end before Redis, because they return their rollouts to the queue
if [ -n "$fenced" ]; then say "job $job was started again elsewhere (start $restart is over)"; else publish stop; fi
while :; do
  wait "$step"
  code=$?
  # A signal interrupts `wait`, but not the step.
  running "$step" || break
done
[ -z "$stopping$fenced" ] || code=0
[ -z "$hopeless" ] || code=12
end_leader
if [ -n "$stopping" ] && [ "${SWEFARM_SLURM_AGAIN:-0}" != 0 ] && [ "$(squeue -h -j "$self" -o %T 2>/dev/null)" = RUNNING ]; then
  say 'out of time: queued again'
  scontrol requeue "$self"
fi
exit "$code"
