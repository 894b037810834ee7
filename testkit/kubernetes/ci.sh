#!/usr/bin/env bash
# `npm run ci:kubernetes`: what the chart is tried with beyond the suite of every submission. Builds Helm where it is not there (six
# minutes of one core, once), renders and checks the chart, builds the images twice and runs them.
# Ends with one line: N passed, N failed. Needs root, Docker, Go and the package registries.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bash testkit/setup/setup.sh tools docker examples || exit 12
export PATH="$PWD/node_modules/.bin:$PATH"
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

step 'Helm, kubeconform and the schemas of three versions' bash testkit/kubernetes/tools.sh helm schemas
step 'the chart: eight sets of values, three versions, the policy' vitest run --project unit testkit/helm
step 'the images: the same twice, and as the chart runs them' vitest run --project full testkit/test/images.full.test.ts

printf '\n%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
