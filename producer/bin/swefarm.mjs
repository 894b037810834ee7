#!/usr/bin/env node
import { launch } from '../../shared/bin/launch.mjs';

await launch({
  name: 'swefarm',
  start: () => import('../src/cli/main.ts'),
  lasting: ['serve', 'export'].includes(process.argv[2] ?? ''),
});
