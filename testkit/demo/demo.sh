#!/usr/bin/env bash
# `npm run demo`: from a fresh clone to a table of judged rollouts, with nothing asked and no model needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# 3: something is missing, which it said; there are ways around most of it, and the demo says where there is none.
bash testkit/setup/setup.sh redis rootfs examples || [ $? = 3 ]
export PATH="$PWD/node_modules/.bin:$PATH"
exec node testkit/demo/demo.ts "$@"
