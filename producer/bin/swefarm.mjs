#!/usr/bin/env node
import { launch } from '../../shared/bin/launch.mjs';

await launch({
  name: 'swefarm',
  source: 'producer/src/cli/main.ts',
  root: new URL('../../', import.meta.url),
  start: () => import('../src/cli/main.ts'),
  lasting: ['serve', 'export'].includes(process.argv[2] ?? ''),
  ...(process.argv[2] === 'serve' ? { endsEarlyWith: 0 } : {}),
});
