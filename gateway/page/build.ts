/** Builds the page in a temporary folder and moves it to `dist/`. `--if-needed` builds only if the sources are newer than `dist/`. */
import { rename, rm } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { build, type Plugin } from 'vite';
import { PAGE_DIST, pageIsCurrent } from '../src/page/built.ts';

/** Fails the build if the page imports a module of Node, which Vite would replace by an empty object. */
const browserOnly: Plugin = {
  name: 'browser-only',
  enforce: 'pre',
  resolveId(specifier, importer) {
    if (isBuiltin(specifier)) throw new Error(`${importer}: a browser has no ${specifier}`);
  },
};

if (!process.argv.includes('--if-needed') || !pageIsCurrent()) {
  const draft = `${PAGE_DIST}.draft-${process.pid}`;
  try {
    await build({
      root: fileURLToPath(new URL('.', import.meta.url)),
      base: './',
      configFile: false,
      logLevel: 'warn',
      plugins: [react(), browserOnly],
      // The page's content security policy forbids inlined files.
      build: {
        outDir: draft,
        emptyOutDir: true,
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        license: { fileName: 'licences.md' },
      },
    });
    await rm(PAGE_DIST, { recursive: true, force: true });
    await rename(draft, PAGE_DIST);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
