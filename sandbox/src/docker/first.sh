# The first process of a container. Code inside cannot kill it. It reaps orphans, and kills all other processes on USR1. It takes
# requests on standard input from firstprocess.ts: `SECRET VERB NONCE BYTES`, then shell words of BYTES bytes, and for `put`
# more. The first line is the secret. A line without the secret was written by a command, and ends the requests. An answer is a
# byte 1, `NONCE CODE` and an end of line, after the output of the command. After the requests it idles.
#   put   writes files: after the words, for each a line `BYTES MODE PATH` and its content
#   run   runs the words in the folder that the first of them names
#   last  the same behind a key; then kills the command's leftovers, waits for a line with the key, and exits with the command's
#         code, which ends the container. The command may write lines to our standard input, and none of them is the key.
#   open  runs the words with these very streams, and idles afterwards: engines do not report the end of the writers
sleep 0 || exit 127
trap '__sf_hit=1; kill -9 -1' USR1
exec 2>/dev/null
__sf_idle() {
  unset __sf_secret __sf_nonce
  exec </dev/null >/dev/null
  # After a kill, no program of the container may run, because code inside may have replaced the program. `read` is part of bash.
  # If `read` fails, the loop with `sleep` waits instead.
  exec 9<> <(:)
  while read -r -u 9 || (($? > 128)); do :; done
  while :; do sleep 86400 & wait $!; done
}
# Older versions of bash read a request byte by byte, or not at all.
((BASH_VERSINFO[0] >= 5)) || { printf 'swefarm no requests\n'; __sf_idle; }
# An engine sets no such variables for a command.
export -n OLDPWD PWD SHLVL
__sf_home=$PWD
# An image may set TMOUT for its commands; here it would end the wait for a request.
[[ ${TMOUT+set} ]] && __sf_tmout=$TMOUT
unset TMOUT

# Waits on a pipe to which nothing is written. After a command has begun this process does not fork: a copy would have the
# secret, the nonce and the key in its memory, and a command can read the memory of every process but process 1.
exec 9<> <(:)
__sf_sleep() {
  read -r -t 0.02 -u 9
}

# Writes $1 bytes of the input to path $3 with mode $2. Fails for a used path: an image may have a link there.
__sf_put() {
  local content folder=${3%/*}
  LC_ALL=C IFS= read -r -N "$1" content
  [[ -e $3 || -L $3 || $EUID != 0 ]] && return 1
  [[ -d ${folder:-/} ]] || mkdir -p -- "$folder" || return
  printf '%s' "$content" >"$3" || return
  [[ $2 == 644 ]] || chmod -- "$2" "$3"
}

# Waits for process $1, and sets __sf_code to its exit code.
__sf_wait() {
  __sf_hit='' __sf_code=0
  wait "$1" || __sf_code=$?
  while [[ $__sf_hit ]]; do
    __sf_hit=
    wait "$1"
    __sf_again=$?
    ((__sf_again == 127)) || __sf_code=$__sf_again
  done
}

# Waits for processes that still print after the command that began them (`exec > >(tee log)`), at most as long as exec.ts waits
# for the output of an ended exec.
__sf_drain() {
  local until=$((${EPOCHREALTIME/[.,]/} + 1250000))
  while __sf_prints && ((${EPOCHREALTIME/[.,]/} < until)); do __sf_sleep; done
}

# Succeeds if another process has our standard output open.
__sf_prints() {
  local stream
  for stream in /proc/[0-9]*/fd/*; do
    [[ $stream != /proc/1/* && $stream -ef /proc/1/fd/1 ]] && return
  done
  return 1
}

# Kills all other processes, for at most 2 s. `kill` fails when there is none.
__sf_end_others() {
  local until=$((${EPOCHREALTIME/[.,]/} + 2000000))
  while kill -9 -1 && ((${EPOCHREALTIME/[.,]/} < until)); do __sf_sleep; done
}

# Runs a command in folder $1, with job control only while the command starts. Without job control, a background command would
# ignore INT. With job control, `wait` would end for a stopped command.
__sf_run() {
  __sf_code=126
  [[ ${__sf_tmout+set} ]] && local -x TMOUT=$__sf_tmout
  cd -- "$1" || return
  shift
  set -m
  "$@" </dev/null 2>&1 9>&- &
  set +m
  __sf_wait $!
  __sf_drain
  cd -- "$__sf_home" || :
}

# Runs a command in a new session, as an engine does for an exec: the processes of a dead shell are found by the session.
__sf_open() {
  [[ ${__sf_tmout+set} ]] && local -x TMOUT=$__sf_tmout
  if type -P setsid >/dev/null; then
    (trap - INT QUIT USR1; exec setsid "$@") <&0 2>&1 9>&- &
  else
    set -m
    "$@" 2>&1 9>&- &
    set +m
  fi
  __sf_wait $!
}

__sf_answer() {
  printf '\001%s %s\n' "$__sf_nonce" "$__sf_code"
}

printf 'swefarm first process\n'
IFS= read -r __sf_secret
while IFS=' ' read -r __sf_given __sf_verb __sf_nonce __sf_bytes; do
  [[ $__sf_given == "$__sf_secret" ]] || break
  LC_ALL=C IFS= read -r -N "$__sf_bytes" __sf_words
  eval "set -- $__sf_words"
  case $__sf_verb in
  put)
    __sf_code=0
    for ((__sf_left = $1; __sf_left > 0; __sf_left--)); do
      IFS=' ' read -r __sf_size __sf_mode __sf_path
      __sf_put "$__sf_size" "$__sf_mode" "$__sf_path" || __sf_code=1
    done
    __sf_answer
    ;;
  run)
    __sf_run "$@"
    __sf_answer
    ;;
  last)
    __sf_key=$1
    shift
    __sf_run "$@"
    __sf_end_others
    __sf_answer
    while read -r __sf_words && [[ $__sf_words != "$__sf_key" ]]; do :; done
    exit "$__sf_code"
    ;;
  open)
    __sf_open "$@"
    __sf_answer
    break
    ;;
  esac
done
__sf_idle
