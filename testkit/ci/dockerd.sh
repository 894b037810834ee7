#!/usr/bin/env bash
# Starts a Docker engine when none answers, and prints "running" (one answered before) or "started PID".
# usage: dockerd.sh start [STATE_DIR] | stop [STATE_DIR]      stop ends only an engine that start has started; needs root and docker.io.
set -euo pipefail

action=${1:-start}
state=${2:-/run/swefarm-dockerd}
socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
socket=${socket#unix://}

answers() { curl --silent --fail --max-time 2 --unix-socket "$socket" http://engine/_ping >/dev/null 2>&1; }

# Succeeds if the process in our pid file is still a living dockerd.
ours() {
  [[ -s $state/started.pid ]] && alive "$(<"$state/started.pid")"
}
alive() { grep -q '(dockerd) [^Z]' "/proc/$1/stat" 2>/dev/null; }

stop() {
  if ! ours; then return 0; fi
  local pid
  pid=$(<"$state/started.pid")
  kill -TERM "$pid"
  for _ in {1..150}; do
    alive "$pid" || break
    sleep 0.1
  done
  if alive "$pid"; then kill -KILL "$pid"; fi
  rm -f "$state/started.pid"
}

# Starts dockerd and waits up to 30 s. Fails at once when dockerd ends.
try() {
  setsid dockerd -H "unix://$socket" --pidfile "$state/dockerd.pid" "$@" >>"$state/dockerd.log" 2>&1 </dev/null &
  echo $! >"$state/started.pid"
  for _ in {1..300}; do
    if answers; then return 0; fi
    kill -0 $! 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

start() {
  if answers; then
    echo running
    return 0
  fi
  if ! command -v dockerd >/dev/null; then
    echo "there is no dockerd: apt-get install docker.io" >&2
    exit 12
  fi
  mkdir -p "$state"
  # A killed machine leaves the pid file of its containerd. dockerd would take any process with this pid for containerd, and wait in vain.
  local left=/var/run/docker/containerd/containerd.pid
  if [[ -s $left ]] && ! grep -qs '(containerd) ' "/proc/$(<"$left")/stat"; then rm -f "$left"; fi
  # The second try is for machines without iptables or overlay: containers there have only their own loopback.
  for flags in "" "--iptables=false --bridge=none --storage-driver=vfs"; do
    # shellcheck disable=SC2086
    if try $flags; then
      echo "started $(<"$state/started.pid")"
      return 0
    fi
    stop
  done
  echo "dockerd does not come up; the end of $state/dockerd.log:" >&2
  tail -n 5 "$state/dockerd.log" >&2
  exit 12
}

case $action in
  start | stop) "$action" ;;
  *)
    echo "usage: dockerd.sh start|stop [STATE_DIR]" >&2
    exit 2
    ;;
esac
