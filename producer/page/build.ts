/** Builds the page into `dist/`, which the gateway and `swefarm show --web` serve. `--if-needed`: only when sources are newer. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { build } from 'vite';

const root = fileURLToPath(new URL('.', import.meta.url));
const outDir = join(root, 'dist');

const newest = (folder: string): number =>
  Math.max(
    ...readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  );
const madeAt = statSync(join(outDir, 'index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
const sources = Math.max(newest(join(root, 'src')), statSync(join(root, 'index.html')).mtimeMs);

if (!process.argv.includes('--if-needed') || madeAt < sources) {
  await build({
    root,
    base: './',
    configFile: false,
    logLevel: 'warn',
    plugins: [react()],
    // No inlined files: the policy of the page allows none.
    build: { outDir, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  });
}
