# Controller of a persistent shell: reads framed requests on stdin, answers on stdout, runs each command in a forked subshell
# with its own process group. Needs bash >= 4.1 and coreutils in the image. Arguments: nonce, name of the scratch folder,
# workdir, and a command line to run once in parallel with the preparation, if any. controller.ts evaluates this script in one
# line of `bash -c`, which then loops over __sf_next, the command and __sf_finish: so bash's messages say "bash: line 1" as they
# do for `bash -c command`.
# Output goes through a named pipe, not to a file: `echo x > /dev/stderr` would truncate a file. The output of a command that
# ends soon and prints under 64 KiB is read from the pipe after its end. For any other command the watcher starts `__sf_spill`,
# which stores head and tail on disk and drops the middle, so that endless output fills neither disk nor worker.
exec 2>/dev/null
shift
__sf_nonce=$1 __sf_work=$3 __sf_gen=0 __sf_slot=32
# the folder is removed at the end, so the name must be one of ours
[[ $2 == .sf-?* && $2 != */* ]] || exit 1
for __sf_base in "${TMPDIR:-/tmp}" /tmp /dev/shm /var/tmp "$HOME"; do
  __sf_dir=$__sf_base/$2
  __sf_old=$__sf_dir/$$.1
  mkdir -p -m 700 "$__sf_dir" "$__sf_old" && break
done
__sf_beside= __sf_printed=
if (($# > 3)); then
  "${@:4}" </dev/null >"$__sf_dir/beside" 2>&1 &
  __sf_beside=$!
fi
shift $#

# Makes new named pipes, with one fork for 32 commands. Each pipe is used once: later output of a command's children must not
# appear in the next observation. Arguments: further pipes to make.
__sf_pool() {
  __sf_gen=$((__sf_gen + 1)) __sf_slot=0
  if ((__sf_gen > 1)); then
    rm -rf "$__sf_old"
    __sf_old=$__sf_dir/$$.$__sf_gen
    mkdir -p -m 700 "$__sf_old"
  fi
  mkfifo "$__sf_old"/{0..31} "$@"
}

# Copies one segment of stdin to file $1 (at most 8 MiB, less when it comes in small writes); sets __sf_n to its bytes.
__sf_segment() {
  local report
  report=$(LC_ALL=C dd bs=16384 count=512 2>&1 >>"$1")
  report=${report##*$'\n'}
  __sf_n=${report%% *}
  [[ $__sf_n == +([0-9]) ]] || __sf_n=0
}

# Copies head and tail of pipe $2 to files. $1 sequence number, $3 base name of the files, $4 bytes to store at each end
__sf_spill() {
  local total=0 last=0 first=0 later=0 sizes=()
  printf '%s' "$BASHPID" >"$3.pid"
  # The command may have ended, and opening a pipe without a writer would block. So fd 8 opens the pipe for reading and writing.
  exec 8<>"$2"
  exec <"$2" 8>&-
  while ((total < 2 * $4)); do
    __sf_segment "$3.h"
    ((__sf_n)) || break
    total=$((total + __sf_n))
  done
  while ((__sf_n)); do
    printf '%s %s %s' "$total" "$first" "$last" >"$3.state"
    __sf_segment "$3.$last"
    total=$((total + __sf_n)) later=$((later + __sf_n))
    sizes[last]=$__sf_n
    # drop the oldest segment when the later ones are enough for the tail
    while ((first < last && later - sizes[first] >= $4)); do
      : >"$3.$first"
      later=$((later - sizes[first])) first=$((first + 1))
    done
    last=$((last + 1))
  done
  printf '%s %s %s' "$total" "$first" "$last" >"$3.state"
  printf '%s\n' "$1" >&7
}

# Takes over the output of a command that lasts longer than 0.1 s (or is blocked on a full pipe). Most commands end sooner, and
# the takeover costs as much as a small command. The creator of the claim file, watcher or controller, owns the reading end.
__sf_watch() {
  local seq pipe base keep ended= newer a b c d
  exec >/dev/null 5>&- 6<&-
  while read -r seq pipe base keep; do
    # Pauses without reading a message, because a read that times out in the middle of a line would lose its beginning. Each time
    # all messages are read, so that short commands leave no backlog.
    while :; do
      read -r -t 0.1 -u 9
      newer=
      while [[ ! $ended ]] && read -t 0; do
        if read -r a b c d; then seq=$a pipe=$b base=$c keep=$d newer=1; else ended=1; fi
      done
      [[ $newer && ! $ended ]] || break
    done
    set -C
    if : >"$base.c"; then
      set +C
      __sf_spill "$seq" "$pipe" "$base" "$keep" 4>&- &
    fi
    set +C
    # end of file: the controller died during its command; the output is still wanted
    [[ $ended ]] && exit 0
  done
}

# Prints the content of the pipe, when no spill was started. Sets __sf_child when a child still has the writing end open.
__sf_drain() {
  local chunk i status
  __sf_child=
  for ((i = 0; ; i++)); do
    IFS= read -r -d '' -n 512 -t 0.01 -u 6 chunk
    status=$?
    if ((status == 0 && ${#chunk} < 512)); then
      printf '%s\0' "$chunk"
    else
      printf '%s' "$chunk"
      ((status == 1)) && return
      # on a loaded machine a timeout does not mean that the pipe is empty
      ((status > 128)) && ! read -t 0 -u 6 && { __sf_child=1; return; }
    fi
    if [[ -z $__sf_dd ]]; then
      __sf_dd=no
      dd iflag=nonblock count=0 </dev/null >/dev/null && __sf_dd=yes
    fi
    if [[ $__sf_dd == yes ]]; then
      dd bs=65536 count=1 iflag=nonblock <&6
      IFS= read -r -d '' -n 1 -t 0.01 -u 6 chunk
      (($? == 1)) && [[ ! $chunk ]] || __sf_child=1
      return
    fi
  done
}

# Prints head and tail of a spill; sets __sf_total and __sf_head. $1 base name, $2 bytes of each end
__sf_emit() {
  local first=0 last=0 size=0 files=("$1.h") i
  __sf_total=0 __sf_head=
  read -r __sf_total first last <"$1.state"
  if [[ $__sf_child && -e $1.$last ]]; then
    size=$(wc -c <"$1.$last") last=$((last + 1))
    __sf_total=$((__sf_total + size))
  fi
  ((__sf_total)) || __sf_total=$(wc -c <"$1.h")
  for ((i = first; i < last; i++)); do files+=("$1.$i"); done
  if ((__sf_total <= 2 * $2)); then
    cat "${files[@]}"
  else
    __sf_head=$2
    head -c "$2" "$1.h"
    cat "${files[@]}" | tail -c "$2"
  fi
}

# Sets __sf_oom and __sf_pids to the kernel's counts of kills for memory and of refused forks; `-` where they are not readable.
__sf_limits() {
  local key value file
  __sf_oom=- __sf_pids=-
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [[ -r $file ]] && while read -r key value; do [[ $key == oom_kill ]] && __sf_oom=$value; done <"$file"
  done
  for file in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
    [[ -r $file ]] && while read -r key value; do [[ $key == max ]] && __sf_pids=$value; done <"$file"
  done
}

# Reads the next command and opens its pipe as fd 5 (writing end) and 6; answers other requests.
__sf_next() {
  while IFS=' ' read -r __sf_op __sf_seq __sf_len __sf_keep; do
    IFS= read -r -N "$__sf_len" __sf_text
    [[ $__sf_op == run ]] && break
    # recover: the output of a command whose shell was lost
    __sf_child=1
    printf '\n%s begin %s\n' "$__sf_nonce" "$__sf_seq"
    __sf_emit "$__sf_dir/o$__sf_seq" "$__sf_keep"
    printf '\n%s end %s - %s %s - -\n' "$__sf_nonce" "$__sf_seq" "${__sf_total:-0}" "${__sf_head:--}"
  done
  [[ $__sf_op == run ]] || { rm -rf "$__sf_dir"; return 1; }
  __sf_op= __sf_pipe=$__sf_old/$__sf_slot
  if ((__sf_slot > 31)) || [[ ! -p $__sf_pipe ]]; then
    __sf_pool
    __sf_pipe=$__sf_old/0
  fi
  __sf_slot=$((__sf_slot + 1)) __sf_out=$__sf_dir/o$__sf_seq
  exec 5<>"$__sf_pipe" 6<"$__sf_pipe"
  printf '%s\n' "$__sf_seq $__sf_pipe $__sf_out $__sf_keep" >&4 || {
    # a command killed the watcher
    exec 4> >(__sf_watch)
    printf '%s\n' "$__sf_seq $__sf_pipe $__sf_out $__sf_keep" >&4
  }
}

# Runs in the forked subshell, before the command.
__sf_enter() {
  set +m
  if [[ $__sf_lc_set ]]; then LC_ALL=$__sf_lc; else unset LC_ALL; fi
  export SWEFARM_COMMAND=$__sf_nonce.$__sf_seq
  cd -- "$__sf_work" || exit 1
}

# Waits for the subshell $1 and sends its reply.
__sf_finish() {
  exec 5>&-
  # Not `wait -f`: bash 5.2 may search for the process in its table of jobs for ever.
  while wait "$1"; __sf_code=$?; ((__sf_code > 128)) && kill -0 "$1"; do
    # the command was stopped, or only the wait was interrupted
    read -r -t 0.05 -u 9
  done
  printf '\n%s begin %s\n' "$__sf_nonce" "$__sf_seq"
  __sf_total=- __sf_head=- __sf_spilled=
  set -C
  : >"$__sf_out.c" || [[ ! -e $__sf_out.c ]] || __sf_spilled=1
  set +C
  if [[ $__sf_spilled ]]; then __sf_collect; else __sf_drain; fi
  __sf_limits
  printf '\n%s end %s %s %s %s %s %s\n' \
    "$__sf_nonce" "$__sf_seq" "$__sf_code" "${__sf_total:--}" "${__sf_head:--}" "$__sf_oom" "$__sf_pids"
  [[ ! $__sf_spilled && $__sf_child ]] && __sf_drain_on
  exec 6<&-
  if [[ $__sf_spilled ]]; then rm -f "$__sf_out".*; elif ((__sf_seq % 32 == 0)); then rm -f "$__sf_dir"/o*; fi
}

# A child still has the pipe open: drain it, so that the child neither blocks nor dies of SIGPIPE.
__sf_drain_on() {
  cat <&6 >/dev/null 4>&- 7>&- 9>&- &
  disown
}

# Prints the output of a spill. The end of file comes at once, unless a child still has the pipe open; the reply does not wait
# for the child.
__sf_collect() {
  local seen pid round
  __sf_child=1
  # On a loaded machine the spill may be late: wait while its pipe is readable (data, or the end of file). An empty pipe without
  # an end of file belongs to a child. The rounds limit a child that prints without end.
  for ((round = 0; round < 15; round++)); do
    if read -r -t 0.2 -u 7 seen; then
      [[ $seen == "$__sf_seq" ]] && { __sf_child=; break; }
    else
      read -t 0 -u 6 || break
    fi
  done
  if [[ $__sf_child ]]; then
    __sf_drain_on
    read -r pid <"$__sf_out.pid"
    kill -9 -- "-$pid" "$pid"
  fi
  __sf_emit "$__sf_out" "$__sf_keep"
}

# Runs after the preparation, which may have changed options of the shell.
__sf_init() {
  set +euCfnm
  trap - EXIT ERR DEBUG
  __sf_lc=${LC_ALL-} __sf_lc_set=${LC_ALL+x}
  LC_ALL=C
  cd "$__sf_work"
  # 7 receives the numbers of finished spills; 9 never receives data and serves as a timer
  __sf_pool "$__sf_dir/done.$$" "$__sf_dir/tick.$$"
  exec 7<>"$__sf_dir/done.$$" 9<>"$__sf_dir/tick.$$"
  exec 4> >(__sf_watch)
  __sf_watcher=$!
  trap : PIPE
  __sf_code=-
  if [[ $__sf_beside ]]; then
    wait "$__sf_beside"
    __sf_code=$?
    IFS= read -r -N 4096 __sf_printed <"$__sf_dir/beside"
  fi
  set -m
  __sf_limits
  printf '\n%s begin 0\n%s\n%s end 0 %s %s %s %s %s %s\n' \
    "$__sf_nonce" "$__sf_printed" "$__sf_nonce" "$$" "$__sf_watcher" "$__sf_dir" "$__sf_oom" "$__sf_pids" "$__sf_code"
}

# The first request is the preparation: environment and activation, run in this shell so that all commands inherit it.
IFS=' ' read -r __sf_op __sf_seq __sf_len __sf_keep
LC_ALL=C IFS= read -r -N "$__sf_len" __sf_text
eval "$__sf_text" </dev/null >/dev/null
__sf_init
