#!/usr/bin/env bash
# The whole suite on a fresh clone: installs and starts what it needs, runs the checks and every test project that
# fits in three quarters of an hour, and ends with one line: N passed, N failed. What takes longer is `npm run ci:full`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# 3: something could not be brought. The closing lines name it, with the reason; all that can run without it runs.
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

# In a bare root all that setup.sh knows is there after it was asked for. Beside the checks and tests that need no engine.
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
  # Tests that need an example would each build it from nothing, side by side and within the time of a hook.
  if [ "$name" = containers ]; then check examples timeout 1200 node testkit/src/examples/build.ts --for both --out "$out/examples"; fi
  printf '\n== vitest project %s (load %s)\n' "$name" "$(cut -d' ' -f1-3 /proc/loadavg)"
  project "$name" "$name" 1800 && continue
  # The files that failed run once more, each with nothing beside it: what fails twice is a failure, what passes is named as unsteady.
  mapfile -t again < <(node testkit/ci/failedfiles.ts "$out/$name.json")
  if [ ${#again[@]} -gt 0 ]; then
    printf '\n== once more: %s\n' "${again[*]}"
    project "$name" "$name.again" 900 --no-file-parallelism "${again[@]}" && continue
    mapfile -t again < <(node testkit/ci/failedfiles.ts "$out/$name.again.json")
  fi
  # An unhandled rejection makes vitest exit non-zero with every test green.
  [ ${#again[@]} -gt 0 ] || echo "vitest project $name failed outside of its tests" >>"$out/failed"
done

node testkit/ci/summary.ts "$out"
