#!/usr/bin/env bash
# Installs the libraries from the registry into an empty project. A strict TypeScript program imports each by its types, and runs.
# Environment: work, npm_registry, root of install.sh.
set -euo pipefail
project=$work/consumer
mkdir -p "$project"
cd "$project"
echo '{"type": "module", "private": true}' >package.json
npm install --no-audit --no-fund --ignore-scripts --loglevel=error --registry "$npm_registry" \
  @swefarm/{policy,sandbox,grading,datasets,trajectories}
cat >use.ts <<'TS'
import * as datasets from '@swefarm/datasets';
import * as grading from '@swefarm/grading';
import { createEndpointClient, NO_LIMITS, openTurnClient } from '@swefarm/policy';
import * as sandbox from '@swefarm/sandbox';
import { PolicyConfig } from '@swefarm/shared';
import * as trajectories from '@swefarm/trajectories';

const endpoint = createEndpointClient('http://127.0.0.1:1/v1', null);
const config = PolicyConfig.parse({ urls: ['http://127.0.0.1:1/v1'], model: 'm', token_mode: 'token-in', stream: 'off' });
const turns = await openTurnClient(config, { rolloutId: 'run.example.0', limits: NO_LIMITS });
// @ts-expect-error the address is a string
createEndpointClient(1, null);
// @ts-expect-error the declarations are checked: there is no such export
console.log(typeof endpoint, typeof turns.ask, Object.keys(datasets).length, grading.absent ?? Object.keys(sandbox).length * Object.keys(trajectories).length > 0);
TS
# Without skipLibCheck, so that the declarations themselves are checked.
"$root/node_modules/.bin/tsc" --strict --noEmit --target es2024 --module nodenext --types node --skipLibCheck false use.ts
node use.ts
