# Forks the processes that the worker starts in its sandboxes and beside them. This small bash forks faster than the worker, and
# not in the worker's main thread. Arguments: a folder, and the name of the first request, if any. Each line of stdin names a
# request: a file in the folder, with parts ended by NUL. The parts are the files for stdin, for output and for the report,
# whether the process enters a sandbox, its parameters, and the command line. The first line of the report is the id of the
# process; the report stays open as descriptor 3. This shell ends with the worker, and its supervisors end with it. bash >= 4.4.
exec 2>/dev/null
cd "$1" || exit 3
# Gives each process its own group, without ignoring interrupts.
set -m

# Joins a sandbox's control groups and opens descriptors for bubblewrap: 7 the process namespace, 8 the system call filter.
# Arguments: files to join, the two files, the process limit.
enter() {
  local file score
  for file in $1; do
    echo 0 >"$file" || exit 3
  done
  # The kernel should kill sandboxes before the worker. A pod's own score may be above 500, and only root may lower a score.
  read -r score </proc/self/oom_score_adj
  ((score < 500)) && score=500 || score=1000
  echo $score >/proc/self/oom_score_adj
  exec 7<"$2" 8<"$3" || exit 3
  [[ ! $4 ]] || ulimit -u "$4" || exit 3
  ulimit -c 0
}

start() {
  local parts
  # The request was cancelled.
  mapfile -d '' -t parts <"$1" || exit 3
  exec <"${parts[0]}" >"${parts[1]}" 2>&1 3>"${parts[2]}" || exit 3
  echo "$BASHPID" >&3
  if [[ ${parts[3]} = enter ]]; then
    enter "${parts[@]:4:4}"
    exec "${parts[@]:8}"
  fi
  exec "${parts[@]:4}"
}

# When bash cannot fork (process limit), it exits after 15 s of retries, and every sandbox would end with it. So this trap reports
# the failure and executes the script again in the same process. If a process ends during the retries, bash exits earlier: the
# trap then reports nothing, and the new shell repeats the request.
trap 'no_fork' EXIT
no_fork() {
  local parts
  if ((SECONDS - from > 10)); then
    mapfile -d '' -t parts <"$name" && echo 'no process could be made' >"${parts[1]}" && echo 0 >"${parts[2]}"
    name=
  fi
  exec "$BASH" --noprofile --norc -c "$BASH_EXECUTION_STRING" "$0" "$PWD" "$name"
}

# Sets name to the request that no_fork passed on, then to each request of stdin.
next() {
  name=$again again=
  [[ $name ]] || read -r name
}

again=$2
while next; do
  # The request is withdrawn: no fork.
  [[ -e $name ]] || continue
  from=$SECONDS
  start "$name" &
  disown $!
done
trap - EXIT
