/** Tests that invalid input gives a clear error and exit code 2 or 12, and submits nothing. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { exited, run } from './cli.ts';
import { farmOptions, flaskRows } from './scene.ts';

const whole = lines(row());

test.each<[string, string | Buffer | null, string[], number, RegExp]>([
  ['a missing file', null, [], 2, /rows\.jsonl: no such file; check the path of --dataset/],
  ['an empty file', '', [], 2, /the file is empty/],
  ['truncated JSONL', `${whole}{"instance_id": "x`, [], 2, /line 2: expected a whole JSON object/],
  ['truncated gzip', gzipSync(whole.repeat(50)).subarray(0, 300), [], 2, /gzip data is cut off/],
  [
    'wrong column types',
    lines(row({ FAIL_TO_PASS: 7 })),
    [],
    2,
    /line 1: FAIL_TO_PASS: expected a list of test ids/,
  ],
  ['an unknown repository', lines(row({ repo: 'x/y' })), [], 2, /image: expected an image column/],
  ['unknown ids', whole, ['--ids', 'nope'], 2, /has no instance nope/],
  ['no policy', whole, ['--agent', 'mini'], 2, /agent mini asks a model: add --policy-url/],
  ['a bad URL', whole, ['--agent', 'mini', '--model', 'm', '--policy-url', 'x'], 2, /--policy-url/],
  ['an unknown flag', whole, ['--agnet', 'noop'], 2, /unknown option '--agnet'[\s\S]*Did you mean --agent/],
  ['a bad choice', whole, ['--agent', 'human'], 2, /Allowed choices are mini, golden, noop, patch/],
  [
    'a key that is not set',
    whole,
    ['--api-key-env', 'NO_SUCH_KEY'],
    2,
    /NO_SUCH_KEY: this environment variable is not set/,
  ],
  [
    'patches without their agent',
    whole,
    ['--patches', 'p.jsonl'],
    2,
    /--agent patch and --patches FILE go together/,
  ],
  ['a foreign Redis URL', whole, ['--redis-url', 'http://x'], 2, /expected redis:\/\//],
  [
    'no Redis there',
    whole,
    ['--redis-url', 'redis://127.0.0.1:1', '--redis-patience-seconds', '0'],
    12,
    /^swefarm: Redis does not answer at redis:\/\/127\.0\.0\.1:1/,
  ],
])('%s', async (_name, content, args, code, message) => {
  const folder = await testFolder();
  const dataset = join(folder, 'rows.jsonl');
  const output = join(folder, 'out.jsonl');
  if (content !== null) await writeFile(dataset, content);
  const agent = args.includes('--agent') ? [] : ['--agent', 'noop'];
  const ran = await run(
    words`rollout --dataset ${dataset} --output ${output} --state-dir ${folder} ${agent} ${args}`,
  );
  expect(ran.stderr).toMatch(message);
  expect(ran.code).toBe(code);
  expect(ran.stderr).not.toMatch(/\n\s+at /);
  expect(ran.stdout).toBe('');
  expect(existsSync(output)).toBe(false);
  expect(existsSync(join(folder, 'runs'))).toBe(false);
});

test('an output that exists is refused, one that cannot be written too', async () => {
  const { folder, at, dataset, output } = await flaskRows(1);
  await writeFile(output, 'precious\n');
  await mkdir(at('dir'));
  const base = words`rollout --dataset ${dataset} --agent noop --state-dir ${folder} --output`;
  const refused = await run([...base, output]);
  expect(refused).toMatchObject(exited(2, /out\.jsonl: exists already; pass --resume/));
  const foreign = await run([...base, output, '--resume']);
  expect(foreign).toMatchObject(exited(2, /exists already|is no line of an output/));
  expect(await run([...base, '-', '--resume'])).toMatchObject({ code: 2 });
  expect(await run([...base, at('dir')])).toMatchObject({ code: 2 });
});

test('ids that nobody has are usage errors', async () => {
  const farm = farmOptions();
  expect(await run(['collect', 'nope', ...farm])).toMatchObject(exited(2, /run nope: not at/));
  expect(await run(['show', 'nope', ...farm])).toMatchObject(exited(2, /is not a rollout id/));
  expect(await run(['show', 'a.b.1', ...farm])).toMatchObject(exited(2, /has no result/));
  expect(await run(['status', 'nope', ...farm])).toMatchObject({ code: 2 });
  expect(await run(['cancel', 'nope', ...farm])).toMatchObject({ code: 2 });
  expect(await run(['status'])).toMatchObject(exited(2, /no Redis configured/));
});
