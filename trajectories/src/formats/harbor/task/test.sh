#!/bin/bash
# Grades the agent's patch in a clean container of the task's image. Writes /logs/verifier/reward.txt. If there is no verdict, the script
# writes no reward, and Harbor reports an error. plan.sh sets the variables and the functions of the task.
set -u
patch=/logs/artifacts/patch.diff
log=/tmp/swefarm-tests.log
out=/logs/verifier

stop() {
  echo "no verdict: $1" >&2
  exit 1
}
unresolved() {
  echo "not resolved: $1"
  printf '{"resolved": false, "unreadable": "%s"}\n' "$1" >"$out/report.json"
  echo 0 >"$out/reward.txt"
  exit 0
}
attempt() {
  echo "== $*"
  timeout -s KILL 120 "$@" </dev/null
}
run_python() {
  local each
  for each in python3 /usr/bin/python3 /opt/miniconda3/bin/python3 /opt/miniconda3/envs/testbed/bin/python3 python; do
    if "$each" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 5))' 2>/dev/null; then
      "$each" -I -S -B "$@"
      return
    fi
  done
  stop 'the image has no Python 3.5 or newer'
}

# Bash reads a function as a whole, so a test that changes this file does not change the rest of this run.
main() {
  . /tests/plan.sh
  cd "$workdir" || stop "there is no $workdir"
  mkdir -p "$out"
  [ -f "$patch" ] || stop 'the patch of the agent is missing'
  # The farm does not evaluate an empty patch of an agent either.
  grep -q '[^[:space:]]' "$patch" || unresolved 'the patch is empty'
  setup || stop 'a setup step failed'
  cp "$patch" "$patch_path" || stop 'the patch cannot be copied'
  before || stop 'a step before the patch failed'
  apply || [ "$unapplied" = tests_run ] || unresolved 'the patch does not apply'
  after || unresolved 'a step between patch and tests failed'
  echo '== tests'
  local began=$SECONDS code
  timeout -s KILL "$limit" bash /tests/eval.sh >"$log" 2>&1 </dev/null
  code=$?
  cat "$log"
  rm -f "$out/reward.txt" "$out/reward.json"
  [ "$code" != 137 ] || [ $((SECONDS - began)) -lt "$limit" ] || unresolved "the tests did not end in $limit s"
  echo '== verdict'
  run_python /tests/grade.py /tests/task.json "$log" "$code" "$out" || stop 'the log was not read'
}
main
exit
