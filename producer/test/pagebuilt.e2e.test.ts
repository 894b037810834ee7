/** Tests that the first request builds the page of a checkout, once, and that a failed build reports the remedy. */

import { appendFile, cp, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { redisUrl, testFolder } from '@swefarm/runs/test/farm.ts';
import { until, words } from '@swefarm/testkit';
import { test as base, expect, onTestFinished } from 'vitest';
import { start } from './cli.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COPIED = ['gateway', 'producer'];
/** Folders that the sources of COPIED name by path. */
const BESIDE = ['shared', 'trajectories', 'tsconfig.json'];

type Served = { output: () => string; code: () => number | null; origin: () => string };

const test = base.extend<{ checkout: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from it what is asked for
  checkout: async ({}, use) => {
    const folder = await testFolder();
    for (const name of BESIDE) await symlink(join(ROOT, name), join(folder, name));
    await linkPackages(join(folder, 'node_modules'));
    const isOurs = (path: string): boolean =>
      !/^\w+\/(node_modules|test|page\/dist.*)(\/|$)/.test(relative(ROOT, path));
    for (const name of COPIED)
      await cp(join(ROOT, name), join(folder, name), { recursive: true, filter: isOurs });
    await writeFile(join(folder, 'empty.jsonl'), '');
    await use(folder);
  },
});

/** Links all installed packages into `modules`. Links to COPIED packages point to the copies beside `modules`. */
async function linkPackages(modules: string): Promise<void> {
  await mkdir(join(modules, '@swefarm'), { recursive: true });
  const ours = join(ROOT, 'node_modules');
  for (const name of await readdir(ours))
    if (name !== '@swefarm' && name !== '.cache') await symlink(join(ours, name), join(modules, name));
  for (const name of await readdir(join(ours, '@swefarm')))
    await symlink(
      COPIED.includes(name) ? join(modules, '..', name) : join(ROOT, name),
      join(modules, '@swefarm', name),
    );
}

function serve(checkout: string, args: readonly string[]): Served {
  const { child, ended, stdout, stderr } = start(args, {}, join(checkout, 'producer/bin/swefarm.mjs'));
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  const output = (): string => stdout() + stderr();
  const origin = (): string => /http:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0] ?? '';
  return { output, code: () => child.exitCode, origin };
}

const showWeb = (checkout: string): Served =>
  serve(checkout, ['show', '--web', join(checkout, 'empty.jsonl')]);
const gateway = (checkout: string): Served =>
  serve(checkout, words`serve --port 0 --redis-url ${redisUrl()} --state-dir ${join(checkout, 'state')}`);

async function started(served: Served): Promise<string> {
  await until(() => served.origin() !== '' || served.code() !== null);
  expect(served.origin(), served.output()).not.toBe('');
  return served.origin();
}

/** Fetches the page and every file that it names, as a browser does. */
async function open(origin: string): Promise<string> {
  const page = await fetch(`${origin}/ui/`);
  const html = await page.text();
  expect([page.status, html]).toEqual([200, expect.stringContaining('<title>')]);
  for (const [, file] of html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)) {
    expect((await fetch(`${origin}/ui/${file}`)).status, file).toBe(200);
  }
  return html;
}

test('two processes and many requests that need it at once: one build, whole for all', async ({
  checkout,
}) => {
  const page = join(checkout, 'gateway/page');
  expect(await readdir(page)).not.toContain('dist');
  const [served, file] = [gateway(checkout), showWeb(checkout)];
  const farm = await started(served);
  const asked = Array.from({ length: 8 }, () => open(farm));
  const [html] = await Promise.all(asked);
  const { mtimeMs } = await stat(join(page, 'dist/index.html'));
  expect(await open(await started(file))).toBe(html);
  expect(file.output()).toContain('building the page');
  expect((await stat(join(page, 'dist/index.html'))).mtimeMs).toBe(mtimeMs);
  expect((await readdir(page)).filter((name) => name.startsWith('dist')).sort()).toEqual([
    'dist',
    'dist.lock',
  ]);

  // A source is newer than the page, so the next start builds the page again.
  await appendFile(join(page, 'src/style.css'), '\n.newer-than-the-page { color: red; }\n');
  const again = await open(await started(showWeb(checkout)));
  expect(again).not.toBe(html);
});

test('a page that cannot be built: command and gateway print the failure and the remedy', async ({
  checkout,
}) => {
  await appendFile(join(checkout, 'gateway/page/src/main.tsx'), '\nthis is no program (\n');
  const farm = await started(gateway(checkout));
  const refused = await fetch(`${farm}/ui/`);
  const text = await refused.text();
  expect(refused.status).toBe(503);
  expect(text).toMatch(/cannot build the page: .*main\.tsx.*run "npm ci" and "npm run page"/s);
  const command = showWeb(checkout);
  await until(() => command.code() !== null);
  expect(command.code()).toBe(12);
  expect(command.output()).toContain('run "npm ci" and "npm run page"');
  // The other routes of the gateway work.
  expect((await fetch(`${farm}/healthz`)).status).toBe(200);
});
