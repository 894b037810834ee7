/** Builds the page apart and moves it to `dist/` whole, where it is served from. `--if-needed`: only when sources are newer. */
import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { build } from 'vite';
import { PAGE_DIST, pageIsCurrent } from '../src/page/built.ts';

if (!process.argv.includes('--if-needed') || !pageIsCurrent()) {
  const draft = `${PAGE_DIST}.draft-${process.pid}`;
  try {
    await build({
      root: fileURLToPath(new URL('.', import.meta.url)),
      base: './',
      configFile: false,
      logLevel: 'warn',
      plugins: [react()],
      // No inlined files: the policy of the page allows none.
      build: { outDir: draft, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
    });
    await rm(PAGE_DIST, { recursive: true, force: true });
    await rename(draft, PAGE_DIST);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
