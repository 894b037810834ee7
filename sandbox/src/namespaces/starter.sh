# Forks what the worker starts in its sandboxes and beside them: this small bash forks in a fraction of the time that a fork of the
# worker takes, and not in the worker's main thread. Arguments: a folder, and what to begin with, if any. Each line of stdin names a
# file in it, whose parts end with NUL: the files for stdin, for output and for the report, whether the process enters a sandbox, what
# it needs for that, and its command line. The report's first line is the id of the process; it stays open on file 3. Ends, and with
# it every supervisor that it started, when the worker does. bash >= 4.4.
exec 2>/dev/null
cd "$1" || exit 3
# A process group for each, which the shell does not make deaf to interrupts.
set -m

# Joins a sandbox's control groups and opens what bubblewrap is handed: 7 the process namespace, 8 the system call filter.
# Arguments: files to join, the two, most processes.
enter() {
  local file score
  for file in $1; do
    echo 0 >"$file" || exit 3
  done
  # When memory ends the kernel takes a sandbox before its worker: a pod's own score may be above 500, and nobody may lower it.
  read -r score </proc/self/oom_score_adj
  ((score < 500)) && score=500 || score=1000
  echo $score >/proc/self/oom_score_adj
  exec 7<"$2" 8<"$3" || exit 3
  [[ ! $4 ]] || ulimit -u "$4" || exit 3
  ulimit -c 0
}

start() {
  local parts
  # Who asked has given it up.
  mapfile -d '' -t parts <"$1" || exit 3
  exec <"${parts[0]}" >"${parts[1]}" 2>&1 3>"${parts[2]}" || exit 3
  echo "$BASHPID" >&3
  if [[ ${parts[3]} = enter ]]; then
    enter "${parts[@]:4:4}"
    exec "${parts[@]:8}"
  fi
  exec "${parts[@]:4}"
}

# Bash gives up where it cannot fork, for example at a limit of processes, after 15 s in which it tries. Every sandbox would end with it:
# it says so to who asked, and begins anew as the same process. A process that ends meanwhile makes it give up at once: that is no answer.
trap 'no_fork' EXIT
no_fork() {
  local parts
  if ((SECONDS - from > 10)); then
    mapfile -d '' -t parts <"$name" && echo 'no process could be made' >"${parts[1]}" && echo 0 >"${parts[2]}"
    name=
  fi
  exec "$BASH" --noprofile --norc -c "$BASH_EXECUTION_STRING" "$0" "$PWD" "$name"
}

# What it began with before it began anew, then what is asked.
next() {
  name=$again again=
  [[ $name ]] || read -r name
}

again=$2
while next; do
  # Its time is over: no fork for it, which may take long.
  [[ -e $name ]] || continue
  from=$SECONDS
  start "$name" &
  disown $!
done
trap - EXIT
