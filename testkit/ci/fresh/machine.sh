# Sourced by fresh.sh and its janitor: runs a command in its own root, and removes what runs leave on this machine.

# Prints the folders of the control group with this name, one in each hierarchy of this machine.
groups() { # groups NAME
  while read -r _ place type _; do
    case $type in cgroup | cgroup2) echo "$place/$1" ;; esac
  done </proc/mounts
}

sweep() { # sweep FOLDER: removes the control groups and files of a run that has ended
  local group left
  for _ in {1..100}; do
    left=''
    for group in $(groups "$(basename "$1")"); do
      if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || left=1; fi
    done
    rm -rf --one-file-system "$1" 2>/dev/null || left=1
    [ -n "$left" ] || return 0
    sleep 0.2
  done
}

enter_groups() { # enter_groups NAME: moves this process to new control groups
  local group set
  for group in $(groups "$1"); do
    mkdir -p "$group"
    for set in cpuset.cpus cpuset.mems; do
      if [ -e "$group/$set" ] && [ -z "$(<"$group/$set")" ]; then cat "${group%/*}/$set" >"$group/$set"; fi
    done
    echo 0 >"$group/cgroup.procs"
  done
}

# Succeeds if the run can have its own network, where engines do not meet this machine's bridges, rules and ports.
# A proxy or mirror on this machine's loopback would be unreachable there: the network is then shared, and a message says so.
own_network() {
  if settings | grep -zqE '=[^=]*(localhost|127\.0\.0\.1|\[::1\])' || grep -rqsE '(localhost|127\.0\.0\.1|\[::1\])' "$1/etc/apt" "$1/usr/local/etc/npmrc"; then
    say "######## the registries are reached over this machine's loopback: the network inside is this machine's own"
    return 1
  fi
}

run_inside() { # run_inside FOLDER STEP MINUTES COMMAND: returns its status, and writes its output to FOLDER/STEP.log too
  local folder=$1 step=$2 limit=$3 command=$4 root=$1/$2 status=0 network=() kind=shared shown
  cp -a --reflink=auto "$folder/base" "$root"
  mkdir -p "$root/home/swefarm"
  # The clone is readable for every user, because some tests run as another user.
  git clone --quiet --no-local "$PWD" "$root/home/swefarm"
  git -C "$root/home/swefarm" checkout --quiet --detach "$(git rev-parse HEAD)"
  git -C "$root/home/swefarm" remote remove origin
  settings >"$folder/settings"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  printf '127.0.0.1 localhost fresh\n::1 localhost\n' >"$root/etc/hosts"
  if own_network "$root"; then
    network=(--net) kind=own
    echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
  fi
  : >"$folder/$step.log"
  rm -f "$folder/first"
  setpriv --pdeathsig KILL -- timeout --foreground --kill-after=30 "${limit}m" \
    setpriv --pdeathsig KILL -- unshare --mount --pid --ipc --uts "${network[@]}" --fork --kill-child -- \
    bash testkit/ci/fresh/inside.sh "$root" "$folder" "$command" "$kind" >"$folder/$step.log" 2>&1 </dev/null &
  running=$!
  setpriv --pdeathsig KILL tail -n +1 -f --pid="$running" "$folder/$step.log" 2>/dev/null &
  shown=$!
  if [ ${#network[@]} -gt 0 ]; then
    setpriv --pdeathsig KILL slirp4netns --configure --disable-host-loopback "$(innermost "$folder/first")" tap0 \
      >"$folder/$step.network.log" 2>&1 9>&- &
    connected=$!
  fi
  wait "$running" || status=$?
  running=''
  if [ -n "$connected" ]; then kill "$connected" 2>/dev/null || true; fi
  connected=''
  wait "$shown" || true
  return "$status"
}

innermost() { # innermost FILE: prints this machine's pid of the first process inside, which is then in its own network
  for _ in {1..300}; do
    if [ -s "$1" ]; then cat "$1" && return; fi
    sleep 0.1
  done
}
