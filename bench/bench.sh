#!/usr/bin/env bash
# `npm run bench`: the cost of the farm beside the cost of its parts without it. Installs and starts what is missing.
# usage: bench.sh [--only rollouts,cost,start,memory,eval,scale,peers] [--quick] [--reps N] [--json FILE] [--against CHECKOUT] [--nodes N,N] [--predictions N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash testkit/setup/setup.sh redis rootfs docker || [ $? = 3 ]
export PATH="$PWD/node_modules/.bin:$PATH"
exec node bench/main.ts "$@"
