#!/usr/bin/env bash
# `npm run demo`: produces a table of judged rollouts from a fresh clone, without questions and without a model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# 3: a part is missing, and setup.sh has printed which one. The demo works without most parts, and prints an error otherwise.
bash testkit/setup/setup.sh redis rootfs examples || [ $? = 3 ]
export PATH="$PWD/node_modules/.bin:$PATH"
exec node testkit/demo/demo.ts "$@"
