# Runs the steps of a setup one after another, each in a bash and a process group of its own, with its own time limit.
# Argument: a mark. Standard input, each part ended by NUL: for each step its seconds, `must` or `may` (fail), and its script.
# The first step that must not fail and does ends it: the last line is then `MARK INDEX CODE`, where CODE is `late` for one that took
# too long, and the exit code is 1.
mark=$1 index=0
# What bash itself says of processes that were killed is nobody's output.
exec 3>&2 2>/dev/null
set -m
while IFS= read -r -d '' seconds && IFS= read -r -d '' rule && IFS= read -r -d '' script; do
  # A script may be longer than an argument may be.
  from=$SECONDS
  bash <(printf '%s' "$script") </dev/null 2>&3 3>&- &
  step=$!
  { sleep "$seconds" && kill -KILL -- "-$step"; } >/dev/null </dev/null 3>&- &
  clock=$!
  wait "$step"
  code=$?
  kill -KILL -- "-$clock"
  wait "$clock"
  # Whoever is killed says 137; only the clock waits until then.
  [ "$code" = 137 ] && [ $((SECONDS - from)) -ge "$seconds" ] && code=late
  if [ "$code" != 0 ] && [ "$rule" = must ]; then
    printf '\n%s %s %s\n' "$mark" "$index" "$code"
    exit 1
  fi
  index=$((index + 1))
done
exit 0
