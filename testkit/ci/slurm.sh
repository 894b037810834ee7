#!/usr/bin/env bash
# Runs a real SLURM of several nodes on this machine, for tests, with its own folder, key, socket and ports.
# Needs root and Debian's slurmctld, slurmd, slurm-client and munge. All nodes share the machine's network and /tmp.
# usage: slurm.sh start DIR NODES | stop DIR | kill DIR NODE (its slurmd, -9) | resume DIR NODE
# start prints SLURM_CONF. SLURM_TEST_KILL_WAIT: seconds between TERM and KILL (5). SLURM_TEST_ACCOUNT_SECONDS: how often a step's
# memory is summed (2). A job that exceeds its requested memory is killed, as on sites without control groups.
set -euo pipefail

action=${1:?usage: slurm.sh start|stop|kill|resume DIR ...}
dir=${2:?a folder for the cluster}
export SLURM_CONF=$dir/slurm.conf
PATH=$PATH:/usr/sbin:/sbin

fail() { printf 'slurm.sh: %s\n' "$*" >&2; exit 12; }

# A zombie counts as ended: on machines whose process 1 does not reap, an ended daemon remains as a zombie.
alive() { [ -r "/proc/$1/stat" ] && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat"; }

end() { # end PID: TERM, then KILL after 5 s
  kill "$1" 2>/dev/null || return 0
  for _ in {1..50}; do
    alive "$1" || return 0
    sleep 0.1
  done
  kill -9 "$1" 2>/dev/null || true
}

free_ports() { # free_ports N: the first of N free ports in a row
  python3 - "$1" <<'PY'
import random, socket, sys
n = int(sys.argv[1])
for _ in range(200):
    base = random.randrange(20000, 30000)
    try:
        for port in range(base, base + n):
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        print(base)
        break
    except OSError:
        pass
else:
    sys.exit("no free ports")
PY
}

configuration() { # configuration NODES BASE_PORT
  cat <<CONF
ClusterName=swefarmtest
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$2
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=${SLURM_TEST_ACCOUNT_SECONDS:-2}
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=10
KillWait=${SLURM_TEST_KILL_WAIT:-15}
MinJobAge=600
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
  for i in $(seq "$1"); do
    echo "NodeName=n$i NodeHostname=localhost NodeAddr=127.0.0.1 Port=$(($2 + i)) CPUs=2 RealMemory=6000 State=UNKNOWN"
  done
  echo "PartitionName=main Nodes=n[1-$1] Default=YES MaxTime=INFINITE DefaultTime=30 State=UP PriorityTier=1"
  echo "PartitionName=urgent Nodes=n[1-$1] MaxTime=INFINITE DefaultTime=30 State=UP PriorityTier=10"
}

start_munge() { # a key and socket of our own
  mkdir -p "$dir/munge"
  dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
  chmod 600 "$dir/munge/key"
  chown -R munge:munge "$dir/munge"
  chmod 711 "$dir/munge"
  setpriv --reuid=munge --regid=munge --clear-groups munged --force --key-file="$dir/munge/key" --socket="$dir/munge/sock" \
    --pid-file="$dir/munge/munged.pid" --log-file="$dir/munge/munged.log" --seed-file="$dir/munge/seed"
  for _ in {1..100}; do
    [ -S "$dir/munge/sock" ] && [ -s "$dir/munge/munged.pid" ] && return 0
    sleep 0.1
  done
  fail "munged does not come up: $(tail -n 2 "$dir/munge/munged.log")"
}

start_node() { # start_node NODE: with its own host name
  mkdir -p "$dir/spool.$1"
  # shellcheck disable=SC2016 # expanded inside
  unshare --uts sh -c 'hostname "$1"; exec slurmd -N "$1"' sh "$1" 7>&- 8>&- 9>&-
}

wait_idle() { # wait_idle NODES
  for _ in {1..300}; do
    [ "$(sinfo -h -N -p main -t idle -o %N 2>/dev/null | sort -u | wc -l)" = "$1" ] && return 0
    sleep 0.2
  done
  fail "not every node came up: $(sinfo -h -N -o '%N %T' | tr '\n' ' ')$(tail -n 3 "$dir/log/slurmctld.log")"
}

start() { # start NODES
  local nodes=$1 base
  for program in slurmctld slurmd sbatch munged; do
    command -v "$program" >/dev/null || fail "there is no $program: bash testkit/setup/setup.sh slurm"
  done
  [ "$(id -u)" = 0 ] || fail 'only root can start a SLURM whose jobs run as other users'
  mkdir -p "$dir"/{run,log,state}
  chmod 755 "$dir"
  base=$(free_ports $((nodes + 1)))
  configuration "$nodes" "$base" >"$SLURM_CONF"
  start_munge
  slurmctld -c 7>&- 8>&- 9>&-
  for i in $(seq "$nodes"); do start_node "n$i"; done
  wait_idle "$nodes"
  echo "$SLURM_CONF"
}

stop() {
  local file pid
  if [ -s "$dir/run/slurmctld.pid" ] && squeue -h >/dev/null 2>&1; then
    scancel --partition=main,urgent 2>/dev/null || scancel --user=nobody 2>/dev/null || true
    for _ in {1..200}; do
      [ -z "$(squeue -h 2>/dev/null)" ] && break
      sleep 0.1
    done
  fi
  # Steps outlive a killed slurmd. The path of this cluster's configuration in their environment identifies them.
  grep -slzx -- "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ | while read -r file; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if [ "$pid" != $$ ] && grep -sqz '^SLURM_JOB_ID=' "$file"; then kill -9 "$pid" 2>/dev/null || true; fi
  done || true
  for file in "$dir"/run/slurmd.*.pid "$dir/run/slurmctld.pid" "$dir/munge/munged.pid"; do
    [ -s "$file" ] || continue
    pid=$(<"$file")
    case $(cat "/proc/$pid/comm" 2>/dev/null) in slurm* | munged) end "$pid" ;; esac
    rm -f "$file"
  done
}

case $action in
  start) start "${3:?how many nodes}" ;;
  stop) stop ;;
  kill) kill -9 "$(<"$dir/run/slurmd.${3:?which node}.pid")" ;;
  resume) start_node "${3:?which node}" ;;
  *) fail "unknown action: $action" ;;
esac
