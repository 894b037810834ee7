# Runs the steps of a setup in order, each in its own bash and process group, with its own time limit. Argument: a mark. Standard
# input, each part ended by NUL: for each step its seconds, `must` or `may` (fail), and its script. After the first failed step
# that must not fail, the last line is `MARK INDEX CODE`, where CODE is `late` for a timeout, and the exit code is 1.
mark=$1 index=0
# bash's messages about killed processes are not output of a step.
exec 3>&2 2>/dev/null
set -m
while IFS= read -r -d '' seconds && IFS= read -r -d '' rule && IFS= read -r -d '' script; do
  # A script may be longer than an argument.
  from=$SECONDS
  bash <(printf '%s' "$script") </dev/null 2>&3 3>&- &
  step=$!
  { sleep "$seconds" && kill -KILL -- "-$step"; } >/dev/null </dev/null 3>&- &
  clock=$!
  wait "$step"
  code=$?
  kill -KILL -- "-$clock"
  wait "$clock"
  # A killed step exits with 137; only the clock kills it after that time.
  [ "$code" = 137 ] && [ $((SECONDS - from)) -ge "$seconds" ] && code=late
  if [ "$code" != 0 ] && [ "$rule" = must ]; then
    printf '\n%s %s %s\n' "$mark" "$index" "$code"
    exit 1
  fi
  index=$((index + 1))
done
exit 0
