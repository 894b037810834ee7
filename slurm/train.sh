#!/usr/bin/env bash
#SBATCH --job-name=swefarm-train
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --signal=B:TERM@120
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --output=swefarm-%j.log
# Trains in one allocation: starts a farm with a gateway on all nodes, and runs a command on the first node, which finds the gateway by
# SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN. The job ends with the command, and with its exit code. See slurm/README.md.
# usage: sbatch -N 4 slurm/train.sh FARM.env COMMAND [ARGUMENT ...]
set -uo pipefail

fail() { printf 'swefarm: %s\n' "$*" >&2; exit 12; }

if [ -z "${SLURM_JOB_ID:-}" ] || [ $# -lt 2 ]; then fail 'usage: sbatch -N 4 slurm/train.sh FARM.env COMMAND [ARGUMENT ...]'; fi
[ -r "$1" ] || fail "the settings file $1 cannot be read from $(hostname): put it on the shared file system"
set -a
# shellcheck disable=SC1090
. "$1"
set +a
shift

# SLURM runs a copy of this script from its spool folder; workers.sh is beside the original script.
original=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null | sed -n 's/^ *Command=\([^ ]*\).*/\1/p' | head -n 1)
for scripts in "${SWEFARM_SLURM_HOME:-/none}/slurm" "$(dirname -- "$0")" "$(dirname -- "$original")"; do
  [ ! -r "$scripts/workers.sh" ] || break
done
[ -r "$scripts/workers.sh" ] || fail 'no bundle found: sbatch the slurm/train.sh in it, or set SWEFARM_SLURM_HOME'
SWEFARM_SLURM_HOME=$(cd "$scripts/.." && pwd)
SWEFARM_SLURM_DIR=${SWEFARM_SLURM_DIR:-${SLURM_SUBMIT_DIR:-$PWD}/farm}
# The end of the farm after the training must not requeue the job.
export SWEFARM_SLURM_HOME SWEFARM_SLURM_DIR SWEFARM_SLURM_GATEWAY=1 SWEFARM_SLURM_AGAIN=0
gateway=$SWEFARM_SLURM_DIR/gateway
begun=$gateway/.train.$SLURM_JOB_ID

training='' farm='' stopping='' signals=0
# Sends SIGTERM to the command once, because a second signal could interrupt its checkpoint.
forward() { [ -z "$stopping" ] || [ -z "$training" ] || ((signals++)) || kill -TERM "$training" 2>/dev/null; }
trap 'stopping=1; forward' TERM INT
running() { kill -0 "$1" 2>/dev/null; }
# Returns the exit code of a process. A signal interrupts `wait`, but not the process.
code_of() {
  local code
  while :; do
    wait "$1"
    code=$?
    running "$1" || return "$code"
  done
}
end() { # end CODE: the farm ends after the training
  kill -TERM "$farm" 2>/dev/null
  code_of "$farm"
  rm -f "$begun"
  exit "$1"
}

# An address that is older than this file belongs to an earlier job.
mkdir -p "$gateway"
: >"$begun" || fail "$gateway cannot be written from $(hostname): set SWEFARM_SLURM_DIR to a folder on the shared file system"
bash "$SWEFARM_SLURM_HOME/slurm/workers.sh" &
farm=$!
for ((waited = 0; ; waited++)); do
  [ -z "$stopping" ] || end 143
  if ! running "$farm"; then
    code_of "$farm"
    code=$?
    [ -z "$stopping" ] || end 143
    [ "$code" != 0 ] || { printf 'swefarm: the farm ended before its gateway was ready, so the command did not run\n' >&2; code=12; }
    end "$code"
  fi
  [ ! "$gateway/address.json" -nt "$begun" ] || break
  if [ "$waited" -ge "${SWEFARM_SLURM_WAIT:-600}" ]; then
    printf 'swefarm: no gateway of this job after %s s: does another job lead the farm in %s?\n' "$waited" "$SWEFARM_SLURM_DIR" >&2
    end 12
  fi
  sleep 1 & wait $!
done
SWEFARM_GATEWAY_URL=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$gateway/address.json")
SWEFARM_GATEWAY_TOKEN=${SWEFARM_GATEWAY_TOKEN:-$(cat "$gateway/gateway.token" 2>/dev/null)}
export SWEFARM_GATEWAY_URL SWEFARM_GATEWAY_TOKEN
[ -z "$stopping" ] || end 143
"$@" &
training=$!
# A signal that arrived before the command had an id was not sent to it.
forward
wait -n "$training" "$farm"
if ! running "$farm" && running "$training"; then
  printf 'swefarm: the farm ended before the training\n' >&2
  stopping=1
  forward
fi
code_of "$training"
end $?
