#!/usr/bin/env bash
# `npm run test:chaos -- --seed N [--rollouts 300] [--workers 3] [--short]`: needs root and Docker; installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash testkit/setup/setup.sh redis rootfs docker faketime
export PATH="$PWD/node_modules/.bin:$PATH"
exec node testkit/chaos/main.ts "$@"
