/** Tests that after SIGKILL or on a full disk an export, an import or a dataset is complete or absent, without temporary files. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { encodeArtifact } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { outputLine } from '@swefarm/trajectories';
import { aResult } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { BIN, exited, linesOf, run, start } from './cli.ts';
import { aPatch, contentOf } from './stored.ts';

const execute = promisify(execFile);

/** Number of rollouts, with one artifact: enough that an export can be killed while it writes. */
const ROLLOUTS = 120;

async function prepare() {
  const folder = await testFolder();
  const artifact_file = join(folder, 'one.json.gz');
  await writeFile(artifact_file, await encodeArtifact(contentOf({}, madeTrajectory(30, 1), aPatch('2'))));
  const lines = Array.from({ length: ROLLOUTS }, (_, at) => {
    const result = aResult({ instance_id: `a__b-${at}`, rollout_id: `r1.a__b-${at}.0` });
    return JSON.stringify(outputLine(result, { patch: aPatch('2'), report: null, artifact_file }));
  });
  const results = join(folder, 'results.jsonl');
  await writeFile(results, `${lines.join('\n')}\n`);
  const prepare = join(folder, 'place');
  await mkdir(prepare);
  return { folder, results, prepare };
}

const EXPORTS = [
  ['sft-messages', 'out.jsonl', async (path: string) => (await linesOf(path)).length],
  [
    'mini-swe-agent',
    'tree',
    async (path: string) => Object.keys(await json(join(path, 'preds.json'))).length,
  ],
  ['tokens', 'shards', async (path: string) => (await json(join(path, '_manifest.json'))).shards[0].rows],
] as const;

const json = async (path: string) => JSON.parse(await readFile(path, 'utf8'));

/** Kills the process `more` milliseconds after its first file in `folder`. Returns false if it had ended before. */
async function killedWhileWriting(args: readonly string[], folder: string, more: number): Promise<boolean> {
  const { child, ended } = start(args);
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over && (await readdir(folder)).length === 0) await wait(5);
  await wait(more);
  child.kill('SIGKILL');
  return (await ended).code === null;
}

test.each(EXPORTS)(
  '%s: killed at any moment it is whole or absent, and the next start leaves no other file',
  async (format, name, count) => {
    const { results, prepare: folder } = await prepare();
    const out = join(folder, name);
    const args = ['export', results, '--format', format, '--out', out];
    for (const more of [0, 20 + Math.random() * 400]) {
      await killedWhileWriting(args, folder, more);
      if (!existsSync(out)) continue;
      expect(await count(out)).toBe(ROLLOUTS);
      await rm(out, { recursive: true });
    }
    expect(await run(args)).toMatchObject({ code: 0 });
    expect(await count(out)).toBe(ROLLOUTS);
    expect(await readdir(folder)).toEqual([name]);
    expect(
      (await readdir(folder, { recursive: true })).filter((one) =>
        /\.part|\.unfinished|shards\.jsonl/.test(one),
      ),
    ).toEqual([]);
  },
);

test('a killed import is completed by the same command', async () => {
  const { folder, results, prepare: own } = await prepare();
  const preds = join(folder, 'preds.jsonl');
  expect((await run(['export', results, '--format', 'preds', '--out', preds])).code).toBe(0);
  const lines = join(own, 'imported.jsonl');
  const args = ['import', 'preds', preds, '--output', lines];
  for (const more of [0, Math.random() * 300]) {
    await killedWhileWriting(args, own, more);
    if (existsSync(lines)) expect(await linesOf(lines)).toHaveLength(ROLLOUTS);
    await rm(lines, { force: true });
    // The state after a kill between the two steps.
    await mkdir(`${lines}.artifacts`, { recursive: true });
    await writeFile(join(`${lines}.artifacts`, '.unfinished'), '');
  }
  expect(await run(args)).toMatchObject({ code: 0 });
  expect(await linesOf(lines)).toHaveLength(ROLLOUTS);
  expect((await readdir(own)).sort()).toEqual(['imported.jsonl', 'imported.jsonl.artifacts']);
  const artifacts = await readdir(`${lines}.artifacts`);
  expect(artifacts).toHaveLength(ROLLOUTS);
  expect(artifacts.every((name) => name.endsWith('.json.gz'))).toBe(true);
  // The import refuses an existing artifact folder that it did not leave unfinished, and does not change it.
  await rm(lines);
  expect(await run(args)).toMatchObject(exited(2, 'exists already'));
  expect(await readdir(`${lines}.artifacts`)).toHaveLength(ROLLOUTS);
});

test('a dataset that is written when a kill comes keeps its old content or has the new one', async () => {
  const { folder, prepare: own } = await prepare();
  const from = join(folder, 'rows.jsonl');
  const row = (at: number) =>
    JSON.stringify({ instance_id: `a__b-${at}`, repo: 'a/b', patch: 'p'.repeat(20_000) });
  await writeFile(from, `${Array.from({ length: 2000 }, (_, at) => row(at)).join('\n')}\n`);
  const out = join(own, 'rows.parquet');
  const args = ['dataset', 'convert', from, '--output', out];
  for (const more of [0, Math.random() * 300]) {
    await killedWhileWriting(args, own, more);
    if (existsSync(out)) expect((await run(['dataset', 'inspect', out])).code).toBe(0);
    for (const name of await readdir(own)) if (!name.endsWith('.part')) await rm(join(own, name));
  }
  expect(await run(args)).toMatchObject({ code: 0 });
  expect(await readdir(own)).toEqual(['rows.parquet']);
});

test('on a disk that fills up each of them says so with exit code 12, and leaves nothing there', async ({
  skip,
}) => {
  const probe = ['--dev-bind', '/', '/', '--size', '4096', '--tmpfs', '/tmp', 'true'];
  const able = await execute('bwrap', probe).then(
    () => true,
    () => false,
  );
  skip(!able, 'bubblewrap mounts nothing on this machine');
  const { folder, results, prepare: disk } = await prepare();
  const preds = join(folder, 'preds.jsonl');
  expect((await run(['export', results, '--format', 'preds', '--out', preds])).code).toBe(0);
  const rows = join(folder, 'rows.jsonl');
  await writeFile(rows, `${JSON.stringify({ instance_id: 'a__b-1', patch: 'p'.repeat(600_000) })}\n`);
  const commands = [
    ...EXPORTS.map(([format, name]) => ['export', results, '--format', format, '--out', join(disk, name)]),
    ['import', 'preds', preds, '--output', join(disk, 'imported.jsonl')],
    ['dataset', 'convert', rows, '--output', join(disk, 'rows.json')],
  ];
  for (const args of commands) {
    // A file system of 128 KiB in a mount namespace of its own.
    const inside = ['--dev-bind', '/', '/', '--size', String(128 * 1024), '--tmpfs', disk];
    const script = '"$@"; echo "code $?"; find "$DISK" -mindepth 1';
    const shell = ['sh', '-c', script, 'sh', process.execPath, BIN, ...args];
    const { stdout, stderr } = await execute('bwrap', [...inside, '--setenv', 'DISK', disk, ...shell]);
    expect(stderr, args.join(' ')).toContain('the disk is full');
    expect(stdout, args.join(' ')).toBe('code 12\n');
  }
});
