#!/usr/bin/env bash
# `npm run bench`: measures the cost of the farm and, for comparison, of the same work without the farm. Installs missing programs.
# usage: bench.sh [--only rollouts,cost,start,memory,eval,scale,peers,branch,admission,controller,recorder,order,client,harbor,registry] [--quick] [--reps N] [--json FILE] [--against CHECKOUT] [--nodes N,N] [--predictions N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash testkit/setup/setup.sh redis rootfs docker registry || [ $? = 3 ]
export PATH="$PWD/node_modules/.bin:$PATH"
exec node bench/main.ts "$@"
