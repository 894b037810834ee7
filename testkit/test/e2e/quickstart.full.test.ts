/** Runs the commands of docs/quickstart.md as they are, with a stand-in for the hub and a scripted policy. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { listening } from '../listening.ts';
import { openScene } from './scene.ts';
import { gymRow, script } from './workflowinstances.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const DATASET = 'SWE-bench/SWE-bench_Verified';
const FILE = 'data/test-00000-of-00001.parquet';
const COMMIT = 'c'.repeat(40);
const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** Serves one parquet file as a dataset of the hub. */
function openHub(parquet: Buffer): Promise<string> {
  const oid = createHash('sha256').update(parquet).digest('hex');
  const answers: Record<string, unknown> = {
    [`/api/datasets/${DATASET}/revision/main`]: { sha: COMMIT },
    [`/api/datasets/${DATASET}/tree/${COMMIT}`]: [
      { type: 'file', path: FILE, size: 130, oid: 'p'.repeat(40), lfs: { oid, size: parquet.length } },
    ],
  };
  return listening((request, response) => {
    const { pathname } = new URL(String(request.url), 'http://hub');
    response.setHeader('x-repo-commit', COMMIT);
    if (pathname === `/datasets/${DATASET}/resolve/${COMMIT}/${FILE}`) response.end(parquet);
    else if (answers[pathname]) response.end(JSON.stringify(answers[pathname]));
    else response.writeHead(404).end();
  });
}

test('the commands of the quickstart end with a report, a rollout, a page and training data', async () => {
  const { folder, env, done, start } = openScene({ SWEFARM_RUNTIME: 'rootfs', SWEFARM_CONCURRENCY: '2' });
  const repos = {
    'pallets__flask-1': 'pallets/flask',
    'psf__requests-2': 'psf/requests',
    'getmoto__moto-1001': 'getmoto/moto',
    'python__mypy-1002': 'python/mypy',
  };
  const trees = join(folder, 'trees');
  const rows = await Promise.all(Object.entries(repos).map(([id, repo]) => gymRow(trees, repo, id)));
  const lines = await writeLines(join(folder, 'rows.jsonl'), rows);
  await done`dataset convert ${lines} --output ${join(folder, 'rows.parquet')}`;
  env.SWEFARM_HUB_URL = await openHub(await readFile(join(folder, 'rows.parquet')));
  const policy = stack.use(await startScriptedPolicy({ script: script() }));
  const bin = join(folder, 'node_modules/.bin');
  await mkdir(bin, { recursive: true });
  await symlink(join(ROOT, 'producer/bin/swefarm.mjs'), join(bin, 'swefarm'));
  await symlink(join(ROOT, 'worker/bin/swefarm-worker.mjs'), join(bin, 'swefarm-worker'));

  const page = await readFile(join(ROOT, 'docs/quickstart.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) => commands);
  expect(blocks).toHaveLength(3);
  const commands = blocks
    .join('')
    .replaceAll('http://localhost:8000/v1', policy.url)
    .replaceAll('INSTANCE.0', 'pallets__flask-1.0');
  // The packages of this checkout are installed, and `show --web` runs until Ctrl-C.
  const [, web = ''] = /^npx swefarm (show --web \S+)/m.exec(commands) ?? [];
  const finite = commands.replace(/^npm ci$/m, '').replace(/^npx swefarm show --web.*$/m, '');
  const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', finite], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', ...env },
    maxBuffer: 16 * 1024 ** 2,
  });
  expect(stdout).toMatch(/"k": ?4\b/);
  expect(stdout).toContain('resolved by swebench-4.1.0; patch applied');
  const resolved = async (name: string) =>
    (await readLines<{ resolved: boolean }>(join(folder, name))).filter((line) => line.resolved).length;
  expect(await resolved('gold.jsonl')).toBe(4);
  expect(await resolved('sft.jsonl')).toBe(await resolved('rollouts.jsonl'));
  expect(await readLines(join(folder, 'rollouts.jsonl'))).toHaveLength(16);

  const shown = stack.use(start`${web.replace('rollouts.jsonl', join(folder, 'rollouts.jsonl')).split(' ')}`);
  await shown.until(/http:\/\/\S+/);
  const [address = ''] = /http:\/\/\S+/.exec(shown.stdout() + shown.stderr()) ?? [];
  expect(await (await fetch(address)).text()).toContain('<title>swefarm</title>');
});
