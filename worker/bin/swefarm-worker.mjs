#!/usr/bin/env node
import { launch } from '../../shared/bin/launch.mjs';

await launch({
  name: 'swefarm-worker',
  source: 'worker/src/main.ts',
  root: new URL('../../', import.meta.url),
  start: () => import('../src/main.ts'),
  lasting: true,
  endsEarlyWith: process.argv[2] === 'run' ? 0 : 130,
});
