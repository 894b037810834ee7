# Sourced by scripts of several steps: `step` runs and counts a step, `summary` prints the counts and fails if a step failed.
passed=0 failed=0

step() { # step NAME COMMAND...: counted as one
  local name=$1 from=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    passed=$((passed + 1))
    printf 'ok   %s (%s s)\n' "$name" $((SECONDS - from))
  else
    failed=$((failed + 1))
    printf 'FAIL %s (%s s)\n' "$name" $((SECONDS - from))
  fi
}

summary() {
  printf '\n%s passed, %s failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
