/** Installs the real bundles from the npm registry, and starts their programs in a root without a C library and without a shell. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkStart, installCard, isIntact, lockPath, shippedCardPath, shippedCards } from '../src/index.ts';

const NPM = shippedCards()
  .map(shippedCardPath)
  .filter((path) => JSON.parse(readFileSync(lockPath(path) ?? '', 'utf8')).kind === 'npm');

function fails(command: string): boolean {
  const [program = '', ...args] = command.split(' ');
  return spawnSync(program, args, { stdio: 'ignore', timeout: 60_000 }).status !== 0;
}

let missing = '';
let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swefarm-bundles-'));
  missing = ['npm ping', 'bwrap --version']
    .filter(fails)
    .map((command) => `${command} fails`)
    .join(', ');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));
beforeEach(({ skip }) => skip(missing !== '', missing));

test.each(NPM)('the programs of %s start in an empty root', async (path) => {
  const signal = new AbortController().signal;
  const options = { source: null, again: false, signal, log: () => undefined };
  const { card, bundle } = await installCard(dir, path, options);
  expect(await isIntact(bundle)).toBe(true);
  expect(await checkStart(card, bundle, { signal, bare: true })).toMatchObject({
    state: 'starts',
    output: expect.stringContaining(card.version),
  });
});
