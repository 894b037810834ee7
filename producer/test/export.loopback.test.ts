/** Tests `swefarm export` as a process: the rollouts it exports, its messages about the others, and its files after an error. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { exited, linesOf, run } from './cli.ts';
import { aPatch, storedRollouts, storeRollouts, toolTrajectory } from './stored.ts';

const failure = { stage: 'policy', class: 'policy_unreachable', message: 'refused', attempts: 5 } as const;

async function prepare() {
  const stored = await storedRollouts([
    { trajectory: toolTrajectory('long', 900), line: { tag: 't05' } },
    { patch: aPatch('2').replace('@@ -1 +1 @@', '@@ -5 +5 @@'), line: { tag: 't10' } },
    { over: { resolved: false, reward: 0 }, patch: aPatch('3'), trajectory: toolTrajectory('short', 50) },
    { over: { instance_id: 'a__b-2' } },
    { over: { outcome: 'failed', resolved: null, reward: null, failure }, trajectory: null },
    { over: { outcome: 'cancelled', resolved: null, reward: null }, trajectory: null },
  ]);
  const out = stored.at('out.jsonl');
  const go = (...more: string[]) => stored.exported('sft-messages', 'out.jsonl', ...more);
  const ids = async () =>
    (await linesOf(out)).map((line) => (line.swefarm as { rollout_id: string }).rollout_id);
  return { ...stored, out, go, ids };
}

test('each line carries the messages, and where they come from', async () => {
  const { folder, out, go } = await prepare();
  const dataset = join(folder, 'rows.jsonl');
  await writeFile(
    dataset,
    `${JSON.stringify({ instance_id: 'a__b-2', repo: 'a/b', license_name: 'MIT' })}\n`,
  );
  const ran = await go('--dataset', dataset, '--instances', 'a__b-2', '--form', 'text');
  expect(ran).toMatchObject(exited(0, '6 read, 1 exported of 1 instances'));
  const [line] = await linesOf(out);
  expect(line).toMatchObject({
    messages: toolTrajectory().messages,
    tools: toolTrajectory().tools,
    instance_id: 'a__b-2',
    model: 'scripted-7b',
    swefarm: {
      run_id: 'r1',
      rollout_id: 'r1.a__b-2.3',
      licence: 'MIT',
      resolved: true,
      reward: 1,
      software_version: '0.1.0+test',
      exported_by: expect.stringMatching(/^\d/),
      imported: null,
    },
  });
});

test('failures of infrastructure and cancelled rollouts are left out, and drops are counted', async () => {
  const { go, ids } = await prepare();
  const { code, stderr } = await go('--only-resolved', '--dedup-patches');
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /left out: 1 not resolved, 1 failed by infrastructure, 1 cancelled, 1 with a patch that another one has\n/,
  );
  expect(await ids()).toEqual(['r1.a__b-1.0', 'r1.a__b-2.3']);
});

test.each([
  [
    ['--tag', 't05', '--tag', 't10'],
    ['r1.a__b-1.0', 'r1.a__b-1.1'],
  ],
  [
    ['--per-instance', '1', '--prefer', 'most-tokens'],
    ['r1.a__b-1.0', 'r1.a__b-2.3'],
  ],
  [
    ['--per-instance', '1', '--prefer', 'shortest'],
    ['r1.a__b-1.2', 'r1.a__b-2.3'],
  ],
  [
    ['--max-tokens', '200'],
    ['r1.a__b-1.1', 'r1.a__b-1.2', 'r1.a__b-2.3'],
  ],
  [
    ['--min-reward', '0.5'],
    ['r1.a__b-1.0', 'r1.a__b-1.1', 'r1.a__b-2.3'],
  ],
  [['--instances', 'a__b-2'], ['r1.a__b-2.3']],
])('%j takes %j', async (flags, expected) => {
  const { go, ids } = await prepare();
  expect((await go(...flags)).code).toBe(0);
  expect(await ids()).toEqual(expected);
});

test('--balance equals resolved and other rollouts; --split separates instances', async () => {
  const { out, go } = await prepare();
  expect((await go('--balance', '--seed', '4')).stderr).toContain('2 beyond the balance');
  expect((await linesOf(out)).map(({ resolved }) => resolved).sort()).toEqual([false, true]);
  const sides = await Promise.all(
    ['train', 'val'].map(async (side) => {
      const own = `${out}.${side}`;
      const ran = await go('--split', side, '--val-share', '0.5', '--out', own);
      return ran.code === 0 ? (await linesOf(own)).map(({ instance_id }) => instance_id as string) : [];
    }),
  );
  expect(sides.flat()).toHaveLength(4);
  expect(sides[0]?.filter((id) => sides[1]?.includes(id))).toEqual([]);
});

test('an empty choice is an error that says why, and writes nothing', async () => {
  const { out, folder, go } = await prepare();
  const ran = await go('--min-reward', '2');
  expect(ran).toMatchObject(exited(2, /no rollout is chosen \(.*4 without a reward/));
  expect((await readdir(folder)).filter((name) => name.includes('out.jsonl'))).toEqual([]);
  await expect(readFile(out)).rejects.toThrow();
});

test('a rollout that ran again counts once, in any order of files, unless its second run failed', async () => {
  const { folder, results, out, go, ids } = await prepare();
  const again = join(folder, 'again');
  await mkdir(again);
  const later = await storeRollouts(again, [
    { over: { rollout_id: 'r2.a__b-1.0' }, line: { replaces: 'r1.a__b-1.0' } },
    {
      over: { rollout_id: 'r2.a__b-1.1', outcome: 'failed', resolved: null, reward: null, failure },
      line: { replaces: 'r1.a__b-1.1' },
      trajectory: null,
    },
  ]);
  const { code, stderr } = await go('--instances', 'a__b-1');
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.not.stringContaining('run again') });
  for (const files of [
    [results, later],
    [later, results],
  ]) {
    await rm(out);
    const ran = await run(['export', ...files, '--format', 'sft-messages', '--out', out, '--only-resolved']);
    expect(ran).toMatchObject(exited(0, '1 run again'));
    expect((await ids()).sort()).toEqual(['r1.a__b-1.1', 'r1.a__b-2.3', 'r2.a__b-1.0']);
    // A report counts replaced rollouts by the same rule.
    const report = JSON.parse((await run(['report', ...files, '--json'])).stdout);
    expect(report).toMatchObject({ total: 6, judged: 4, resolved: 3 });
  }
});

test('an export takes what this version reads of one store, and counts the rest by name', async () => {
  const { at, results, out, go, ids, exported } = await prepare();
  const artifact = (id: string) => at(`artifacts/${id}.json.gz`);
  const changed = async (id: string, change: object) => {
    const content = JSON.parse(gunzipSync(await readFile(artifact(id))).toString());
    await writeFile(artifact(id), gzipSync(JSON.stringify({ ...content, ...change })));
  };
  // The first artifact is of a future version, the second of a version that did not record its software version.
  await changed('r1.a__b-1.0', { format: 'swefarm-artifact-2' });
  await changed('r1.a__b-1.1', { software_version: undefined, claim: undefined });
  await changed('r1.a__b-2.3', { a_field_to_come: { deep: true } });
  const lines = await linesOf(results);
  const older = lines.map(({ facts, reward_table, report, ...line }) => line);
  const newer = lines.map((line) => ({ ...line, a_field_to_come: [1] }));
  for (const stored of [older, newer]) {
    await writeFile(results, stored.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { code, stderr } = await go('--only-resolved');
    expect(code).toBe(10);
    expect(stderr).toContain('not exported: 1 whose artifact is of another version of swefarm');
    expect(await ids()).toEqual(['r1.a__b-1.1', 'r1.a__b-2.3']);
    const [first] = await linesOf(out);
    expect(first?.swefarm).toMatchObject({ software_version: null });
    await rm(out);
    for (const format of ['openhands', 'verifier', 'parquet', 'atif', 'nemo-gym', 'swe-agent']) {
      const { path, ...ran } = await exported(format, `out-${format}`, '--only-resolved');
      expect([format, ran.code, ran.stderr]).toEqual([format, 10, expect.stringContaining('2 exported')]);
      await rm(path, { recursive: true });
    }
  }
});

test('a file that exists is not replaced', async () => {
  const { out, go } = await prepare();
  await writeFile(out, 'mine');
  expect(await go()).toMatchObject(exited(2, 'exists already'));
  expect(await readFile(out, 'utf8')).toBe('mine');
});

test('missing and damaged artifacts are counted by reason and change the exit code', async () => {
  const { folder, go, ids } = await prepare();
  await truncate(join(folder, 'artifacts', 'r1.a__b-1.0.json.gz'), 40);
  const { code, stderr } = await go('--only-resolved');
  expect(code).toBe(10);
  expect(stderr).toContain('not exported: 1 whose artifact is damaged');
  expect(await ids()).toEqual(['r1.a__b-1.1', 'r1.a__b-2.3']);
});

test('a results file that is cut off, or is something else, is an error with its line', async () => {
  const { folder, results, go } = await prepare();
  const size = (await readFile(results)).length;
  await truncate(results, size - 20);
  expect(await go()).toMatchObject(exited(2, /line 6: expected a whole JSON object/));
  const other = join(folder, 'other.jsonl');
  await writeFile(other, '{"a": 1}\n');
  const ran = await run(['export', other, '--format', 'preds', '--out', join(folder, 'p')]);
  expect(ran).toMatchObject(exited(2, 'line 1 is no line of an output'));
});

test('exports and reports read a gzipped results file; a truncated one is an error', async () => {
  const { folder, results } = await prepare();
  const packed = join(folder, 'packed.jsonl.gz');
  const bytes = gzipSync(await readFile(results));
  await writeFile(packed, bytes);
  const out = join(folder, 'verifier.jsonl');
  const taken = words`export ${packed} --format verifier --out ${out} --only-resolved`;
  expect(await run(taken)).toMatchObject(exited(0, '3 exported'));
  expect(JSON.parse((await run(['report', packed, '--json'])).stdout)).toMatchObject({ total: 6, judged: 4 });
  await writeFile(packed, bytes.subarray(0, bytes.length - 30));
  const cut = [...taken.slice(0, 5), join(folder, 'cut.jsonl')];
  for (const args of [cut, ['report', packed]]) {
    expect(await run(args)).toMatchObject(exited(2, 'cut off or damaged'));
  }
  expect(existsSync(join(folder, 'cut.jsonl'))).toBe(false);
});

test('a disk that is full is told, and leaves nothing', async () => {
  const { folder, exported } = await prepare();
  // Every write to /dev/full fails as on a full disk, so the name of the temporary file is a link to it.
  await symlink('/dev/full', join(folder, '.full.jsonl.part'));
  const ran = await exported('preds', 'full.jsonl', '--per-instance', '1');
  expect(ran).toMatchObject(exited(12, 'the disk is full'));
  expect((await readdir(folder)).filter((name) => name.includes('full'))).toEqual([]);
});

test('predictions: one for an instance, as lines and as an object', async () => {
  const { at, exported } = await prepare();
  const preds = (name: string, ...more: string[]) => exported('preds', name, ...more);
  expect(await preds('p.jsonl')).toMatchObject(exited(2, 'add --per-instance 1'));
  expect((await preds('p.jsonl', '--per-instance', '1')).code).toBe(0);
  expect(await linesOf(at('p.jsonl'))).toMatchObject([
    { instance_id: 'a__b-1', model_name_or_path: 'scripted-7b', model_patch: aPatch('2') },
    { instance_id: 'a__b-2' },
  ]);
  expect((await preds('p.json', '--per-instance', '1', '--form', 'json')).code).toBe(0);
  const object = JSON.parse(await readFile(at('p.json'), 'utf8'));
  expect(object['a__b-2']).toMatchObject({ instance_id: 'a__b-2', model_patch: aPatch('2') });
});

test('gzip by the name, and standard output', async () => {
  const { results, exported } = await prepare();
  const { path } = await exported('sft-messages', 'out.jsonl.gz');
  const text = gunzipSync(await readFile(path)).toString();
  const piped = await run(['export', results, '--format', 'sft-messages', '--out', '-']);
  expect(piped.stdout).toBe(text);
  expect(text.trimEnd().split('\n')).toHaveLength(4);
});

test('predictions of several files become one, and the check of sb-cli is made', async () => {
  const folder = await testFolder();
  const files = await Promise.all(
    ['m1', 'm1', 'm2'].map(async (model_name_or_path, at) => {
      const path = join(folder, `${at}.json`);
      const of = (id: string) => ({ [id]: { model_name_or_path, model_patch: aPatch(`${at}`) } });
      await writeFile(path, JSON.stringify({ ...of('a__b-0'), ...of(`a__b-${at + 1}`) }));
      return path;
    }),
  );
  const merged = join(folder, 'merged.jsonl');
  const one = await run(['preds', 'merge', ...files.slice(0, 2), '--out', merged]);
  expect(one).toMatchObject(exited(0, '3 predictions'));
  expect(await linesOf(merged)).toMatchObject([
    { instance_id: 'a__b-0', model_patch: aPatch('0') },
    { instance_id: 'a__b-1' },
    { instance_id: 'a__b-2', model_patch: aPatch('1') },
  ]);
  expect(await run(['preds', 'check', merged])).toMatchObject(
    exited(0, '3 predictions of m1, 0 empty; sb-cli can submit it'),
  );
  const mixed = join(folder, 'mixed.jsonl');
  await run(['preds', 'merge', ...files, '--out', mixed]);
  await writeFile(
    mixed,
    `${await readFile(mixed, 'utf8')}{"instance_id":"a__b-0","model_name_or_path":"m1","model_patch":""}\n`,
  );
  const { code, stderr } = await run(['preds', 'check', mixed]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/line 5: instance_id: expected an id that differs from line 1/);
  expect(stderr).toMatch(/the file: model_name_or_path: expected one model, found m1, m2/);
});
