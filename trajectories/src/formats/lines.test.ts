/** What each format writes for a rollout whose agent has several lines. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstalledAgent } from '@swefarm/shared';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { exportedFile, rowsIn } from '../../test/exportedfile.ts';
import { aResult } from '../../test/result.ts';
import type { LineChoice } from '../export/lines.ts';
import { EXPORT_FORMATS } from './registry.ts';

const AGENT: InstalledAgent = {
  ...{ name: 'claude-code', version: '2.1', card: 'c', digest: null, exit_code: 0, lines: 6 },
  ...{ masked: { abandoned: 1 }, requests: 8, whole: 3, repeated: 0, repaired: 0, refused: 0 },
};

const RESULT = aResult({ agent: AGENT, turns: 7 });
const exported = (format: string, lines: LineChoice): Promise<string> =>
  exportedFile(format, RESULT, { lines });

type Read = Record<string, unknown>;
const parquetIn = async (path: string): Promise<Read[]> =>
  await parquetReadObjects({ file: await asyncBufferFromFile(join(path, 'shard-00000.parquet')) });

test('sft-messages: each trained line is a conversation with the id of its rollout', async () => {
  const rows = await rowsIn(await exported('sft-messages', 'all'));
  expect(
    rows.map(({ swefarm }) => [swefarm.rollout_id, swefarm.line, swefarm.line_kind, swefarm.lines]),
  ).toEqual(
    [
      ['L1', 'main'],
      ['L2', 'subagent'],
      ['L3', 'summary'],
      ['L4', 'main'],
      ['L6', 'subagent'],
    ].map(([id, kind]) => ['r1.a__b-1.0', id, kind, 6]),
  );
  expect(rows.at(-1).messages).toEqual([
    { role: 'system', content: 'You are L2.' },
    { role: 'user', content: 'ask 2.1' },
    { role: 'assistant', content: 'say 2.1', weight: 0 },
    { role: 'user', content: 'ask 6.1' },
    { role: 'assistant', content: 'say 6.1' },
  ]);
  expect(await rowsIn(await exported('sft-messages', 'main'))).toHaveLength(1);
});

test('tokens: each trained line is a segment with its weight', async () => {
  const rows = await parquetIn(await exported('tokens', 'all'));
  const told = rows.map((row) => [row.segment, row.line, row.shared_turns, row.line_count, row.line_weight]);
  expect(told).toEqual([
    [0, 'L1', 0, 5, 0.2],
    [1, 'L2', 0, 5, 0.2],
    [2, 'L3', 0, 5, 0.2],
    [3, 'L4', 0, 5, 0.2],
    [4, 'L6', 1, 5, 0.2],
  ]);
  expect(rows.at(-1)?.loss_mask).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
  expect(await parquetIn(await exported('tokens', 'main'))).toMatchObject([{ line: 'L1', line_weight: 1 }]);
});

test('parquet: a rollout is one row, with the other lines as they are stored', async () => {
  const [row, ...more] = await parquetIn(await exported('parquet', 'all'));
  expect(more).toEqual([]);
  expect(row).toMatchObject({ agent: 'claude-code 2.1', turns: 7n, has_tokens: true });
  const lines = row?.lines as Read[];
  expect(lines.map(({ id, kind, masked, turns, from }) => [id, kind, masked, turns, from ?? null])).toEqual([
    ['L2', 'subagent', null, 2n, null],
    ['L3', 'summary', null, 1n, null],
    ['L4', 'main', null, 1n, null],
    ['L5', 'abandoned', 'abandoned', 1n, { line: 'L1', turns: 1n, messages: 3n }],
    ['L6', 'subagent', null, 1n, { line: 'L2', turns: 1n, messages: 3n }],
  ]);
  expect(lines[4]?.messages).toMatchObject([{ content: 'ask 6.1' }, { content: 'say 6.1' }]);
});

test('atif: other lines are embedded trajectories, and a step of another line is copied context', async () => {
  const path = await exported('atif', 'all');
  const [file = ''] = await readdir(path);
  const root = JSON.parse(await readFile(join(path, file), 'utf8'));
  expect(root.agent).toMatchObject({ name: 'claude-code', version: '2.1' });
  const others = root.subagent_trajectories as (typeof root)[];
  expect([root, ...others].map(({ trajectory_id, steps }) => [trajectory_id, steps.length])).toEqual([
    ['r1.a__b-1.0.L1', 4],
    ['r1.a__b-1.0.L2', 4],
    ['r1.a__b-1.0.L3', 3],
    ['r1.a__b-1.0.L4', 3],
    ['r1.a__b-1.0.L6', 4],
  ]);
  const sampled = others.map(({ final_metrics }) => final_metrics.total_completion_tokens);
  expect(sampled).toEqual([3, 4, 2, 3]);
  const steps = others.at(-1).steps as Read[];
  expect(steps.map(({ is_copied_context, metrics }) => [is_copied_context, metrics !== undefined])).toEqual([
    [true, false],
    [true, false],
    [true, false],
    [undefined, true],
  ]);
});

test('nemo-gym: the answer is the main line, and the other lines have outputs of their own', async () => {
  const [row] = await rowsIn(await exported('nemo-gym', 'all'));
  const idsIn = (output: Read[]) =>
    output
      .filter((item) => item.generation_token_ids)
      .map((item) => [item.prompt_token_ids, item.generation_token_ids]);
  expect(idsIn(row.response.output)).toHaveLength(2);
  expect(row).toMatchObject({ turns: 7, line_count: 5, line_weight: 0.2 });
  const told = row.lines.map((one: Read) => [
    one.line,
    one.masked,
    one.turns,
    one.generated_tokens,
    'output' in one,
  ]);
  expect(told).toEqual([
    ['L2', null, 2, 3, true],
    ['L3', null, 1, 4, true],
    ['L4', null, 1, 2, true],
    ['L5', 'abandoned', 1, 5, false],
    ['L6', null, 1, 3, true],
  ]);
  const [agent, , , , fork] = row.lines;
  const [first] = idsIn(agent.output) as number[][][];
  // The prompt of a fork begins with the tokens of the line that it continues.
  expect(idsIn(fork.output)).toEqual([[[...(first?.flat() ?? []), -1, -2, -3], expect.anything()]]);
  const [main] = await rowsIn(await exported('nemo-gym', 'main'));
  expect(main.lines.some((one: Read) => 'output' in one)).toBe(false);
});

test.each(['swe-agent', 'mini-swe-agent', 'openhands', 'swesmith-xml'])(
  '%s: has one conversation for a rollout, so it writes the main line only',
  async (format) => {
    expect(EXPORT_FORMATS[format]?.lines).toEqual(['main']);
    const path = await exported(format, 'main');
    const files =
      EXPORT_FORMATS[format]?.shape === 'file' ? [path] : await readdir(path, { recursive: true });
    const texts = await Promise.all(
      files.map((file) => readFile(file === path ? file : join(path, file), 'utf8').catch(() => '')),
    );
    const all = texts.join('\n');
    expect(all).toContain('say 1.2');
    expect(all).not.toContain('say 2.1');
  },
);
