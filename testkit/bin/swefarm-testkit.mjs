#!/usr/bin/env node
import { launch } from '../../shared/bin/launch.mjs';

await launch({
  name: 'swefarm-testkit',
  start: () => import('../src/main.ts'),
  lasting: false,
});
