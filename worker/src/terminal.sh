# Starts an interactive bash on a pseudo terminal. $1 activates the environment, $2 is the folder, $3 a file for the process id, $4 and $5
# rows and columns. The image needs python3 or script; without them the exit code is 79.
cd -- "$2" || exit
eval "$1"
export TERM=xterm-256color __SF_PID=$3 __SF_ROWS=$4 __SF_COLUMNS=$5
export __SF_RUN='stty rows "$__SF_ROWS" cols "$__SF_COLUMNS" 2>/dev/null; echo "$$" >"$__SF_PID"; unset "${!__SF_@}"; PS1="\\w\\\$ " exec bash --norc -i'
if python3 -c 'import pty' 2>/dev/null; then
  exec python3 -c 'import os, pty; pty.spawn(["bash", "-c", os.environ["__SF_RUN"]])'
fi
command -v script >/dev/null || exit 79
exec script -q -c 'exec bash -c "$__SF_RUN"' /dev/null
