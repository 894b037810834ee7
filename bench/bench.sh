#!/usr/bin/env bash
# `npm run bench`: what the farm costs, measured beside what its parts cost without it. Installs and starts what is missing.
# usage: bench.sh [--only shell,rollouts,memory,eval,gateway,metrics,page,recovery,scale,export,start,claim,processes,peers] [--quick] [--reps N] [--json FILE] [--against CHECKOUT] [--calls N --turns N] [--nodes N,N] [--predictions N] [--formats atif,tokens]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
parts=(redis rootfs docker chromium page)
# Exports need nothing but Node.
[[ " $* " == *" --only export "* ]] && parts=()
bash testkit/setup/setup.sh "${parts[@]}" || [ $? = 3 ]
export PATH="$PWD/node_modules/.bin:$PATH"
exec node bench/main.ts "$@"
