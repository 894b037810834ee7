#!/usr/bin/env bash
# The whole suite on a fresh clone: installs and starts what it needs, runs the checks and the test projects unit, redis,
# containers and e2e, and ends with one line: N passed, N failed. Longer checks are in `npm run ci:full`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# 3: a part could not be installed. The closing lines name it with the reason; tests that do not need it run.
bash testkit/setup/setup.sh --report "$out/missing" all || [ $? = 3 ] || exit 1
export PATH="$PWD/node_modules/.bin:$PATH" SWEFARM_TEST_LEFT_OUT=$out/leftout

check() { # check NAME COMMAND...: one check that is no vitest test, counted as one
  local name=$1 from=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    printf 'ok   %s (%s s)\n' "$name" $((SECONDS - from))
    echo "$name" >>"$out/passed"
  else
    printf 'FAIL %s (%s s)\n' "$name" $((SECONDS - from))
    cat "$out/$name.log"
    echo "$name" >>"$out/failed"
  fi
}

project() { # project NAME REPORT SECONDS [OPTION...] [FILE...]: one vitest project, whole or the files that are named; its status is vitest's
  local name=$1 report=$2 seconds=$3
  shift 3
  timeout --kill-after=30 "$seconds" vitest run --project "$name" --reporter=default --reporter=./testkit/ci/leftout.ts --reporter=json --outputFile.json="$out/$report.json" "$@"
}

# Checks that setup.sh installs all its parts in a bare root, concurrently with the checks and tests that need no engine.
if [ "$(id -u)" = 0 ]; then
  check setup setpriv --pdeathsig TERM bash testkit/ci/fresh.sh setup &
  beside=$!
  trap 'kill "$beside" 2>/dev/null; rm -rf "$out"' EXIT
else
  echo 'check setup: only root can make a bare Debian root' >>"$out/leftout.checks"
fi
check lint biome ci .
check types turbo run typecheck --output-logs=errors-only
check knip knip
mapfile -t scripts < <(git ls-files "*.sh" "*.sbatch")
check shell shellcheck -s bash -S error .ci/run "${scripts[@]}"
check audit bash -c 'timeout 120 npm audit --json 2>/dev/null | node testkit/ci/audit.ts'
grep -hs '^AUDIT' "$out/audit.log"
sed -n 's/^AUDIT NOT/check audit: NOT/p' "$out/audit.log" >>"$out/leftout.checks"

for name in unit redis containers e2e; do
  if [ "$name" != unit ]; then
    wait
    trap 'rm -rf "$out"' EXIT
  fi
  # The examples are built first: otherwise several tests would build them at once, within the timeout of a hook.
  if [ "$name" = containers ]; then check examples timeout 1200 node testkit/src/examples/build.ts --for both --out "$out/examples"; fi
  printf '\n== vitest project %s (load %s)\n' "$name" "$(cut -d' ' -f1-3 /proc/loadavg)"
  project "$name" "$name" 2700 && continue
  # The failed files run once more, one at a time. A test that fails twice is a failure; a test that passes is listed as unsteady.
  mapfile -t again < <(node testkit/ci/failedfiles.ts "$out/$name.json")
  if [ ${#again[@]} -gt 0 ]; then
    printf '\n== once more: %s\n' "${again[*]}"
    project "$name" "$name.again" 900 --no-file-parallelism "${again[@]}" && continue
    mapfile -t again < <(node testkit/ci/failedfiles.ts "$out/$name.again.json")
  fi
  # An unhandled rejection makes vitest exit non-zero although every test passed.
  [ ${#again[@]} -gt 0 ] || echo "vitest project $name failed outside of its tests" >>"$out/failed"
done

node testkit/ci/summary.ts "$out"
