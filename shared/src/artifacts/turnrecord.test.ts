import { bareTrajectory, bareTurn } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import type { Turn } from '../records/trajectory.ts';
import {
  type BegunAnswer,
  decodeTurns,
  encodeTurns,
  lineOfBegun,
  parseTurns,
  recordedTurn,
  recordedTurns,
  textOfTurns,
} from './turnrecord.ts';

const turn = (message: number, id: number): Turn =>
  bareTurn(message, {
    model_seconds: 2,
    policy_version: { start: '1', end: '2' },
    tokens: {
      prefix_length: 0,
      prompt_suffix: Int32Array.of(id, 2),
      generation: Int32Array.of(3),
      log_probs: Float32Array.of(-0.5),
    },
    commands: [{ command: 'ls', exit_code: id, seconds: 1, output_bytes: 1, note: null }],
  });

const trajectory = bareTrajectory({
  ...{ token_mode: 'token-in', exit_status: null },
  messages: [
    { role: 'system', content: 's' },
    { role: 'user', content: 'u' },
    { role: 'assistant', content: 'first' },
    { role: 'user', content: 'seen' },
    { role: 'assistant', content: 'second' },
    { role: 'user', content: 'not yet answered' },
  ],
  turns: [turn(2, 0), turn(4, 1)],
});

test('a record of several appends is read as written', async () => {
  const [first, second] = recordedTurns(trajectory, 2);
  if (!first || !second) throw new Error('no turns');
  expect(first).toMatchObject({ observed: [], exit_codes: [], at: 2, start: expect.any(String) });
  expect(second).toMatchObject({ observed: [{ content: 'seen' }], exit_codes: [0], at: 5 });
  expect(recordedTurn(trajectory, 1, 5)).toEqual(second);
  const replay = { turns: 0, differed_at: 3 };
  const blob = Buffer.concat([await encodeTurns([first], { replay }), await encodeTurns([second])]);
  expect(await decodeTurns(blob)).toEqual({ replay, turns: [first, second] });
  expect(parseTurns(textOfTurns([first], { replay: null }).toString())).toEqual({
    replay: null,
    turns: [first],
  });
});

const ids = (...list: number[]) => Int32Array.from(list);
const begunOf = (list: number[], text: string): BegunAnswer => ({
  ...{
    observed: [{ role: 'user', content: 'seen' }],
    exit_codes: [0],
    prompt: 'hash',
    text,
    ids: ids(...list),
  },
  log_probs: Float32Array.from(list, (id) => -id),
  ...{ versions: [{ start: '1', end: '1', tokens: list.length }], seconds: list.length },
});

test('parts of an answer are joined or replaced, and removed with its turn', async () => {
  const [first] = recordedTurns(trajectory, 1);
  const parts = [begunOf([1, 2], 'ab'), begunOf([1, 2, 3], 'abc'), begunOf([1, 9], 'ax')];
  if (!first) throw new Error('no turn');
  const blobs = [await encodeTurns([first], { replay: null })];
  let stored: BegunAnswer | null = null;
  for (const part of parts) {
    const line = lineOfBegun(part, stored);
    expect(line?.tokens.prefix_length).toBe(part === parts[1] ? 2 : 0);
    blobs.push(await encodeTurns([], undefined, line));
    stored = part;
    expect(lineOfBegun(part, stored)).toBe(null);
    expect(await decodeTurns(Buffer.concat(blobs))).toEqual({ replay: null, turns: [first], begun: part });
  }
  const lost = Buffer.concat([blobs[0] as Buffer, blobs[2] as Buffer]);
  expect(await decodeTurns(lost)).toEqual({ replay: null, turns: [first] });
  blobs.push(await encodeTurns([first]));
  expect(await decodeTurns(Buffer.concat(blobs))).toEqual({ replay: null, turns: [first, first] });
});

test('a withdrawn part is ignored, and the next part does not continue it', async () => {
  const part = begunOf([1, 2], 'ab');
  const none = begunOf([], '');
  const blobs = [await encodeTurns([], { replay: null }, lineOfBegun(part, null))];
  expect(lineOfBegun(none, null)).toBe(null);
  blobs.push(await encodeTurns([], undefined, lineOfBegun(none, part)));
  expect(lineOfBegun(none, none)).toBe(null);
  expect(await decodeTurns(Buffer.concat(blobs))).toEqual({ replay: null, turns: [] });
  blobs.push(await encodeTurns([], undefined, lineOfBegun(part, none)));
  expect(await decodeTurns(Buffer.concat(blobs))).toMatchObject({ begun: part });
});

test('a sample that differs only in log-probabilities replaces the part', async () => {
  const stored = begunOf([1, 2], 'ab');
  const again = { ...begunOf([1, 2, 3], 'abc'), log_probs: Float32Array.of(-1, -2.5, -3) };
  const blobs = [
    await encodeTurns([], { replay: null }, lineOfBegun(stored, null)),
    await encodeTurns([], undefined, lineOfBegun(again, stored)),
  ];
  expect((await decodeTurns(Buffer.concat(blobs))).begun).toEqual(again);
});

test('a record whose last append was interrupted has the turns before it', async () => {
  const turns = recordedTurns(trajectory, 2);
  const [first, second] = [
    await encodeTurns(turns.slice(0, 1), { replay: null }),
    await encodeTurns(turns.slice(1)),
  ];
  for (let cut = 0; cut < second.length - 8; cut += 7) {
    const read = await decodeTurns(Buffer.concat([first, second.subarray(0, cut)]));
    expect(read.turns.length).toBeLessThanOrEqual(2);
    expect(read.turns[0]).toEqual(turns[0]);
  }
});

test.each([
  ['no gzip', Buffer.from('x'), 'bad_artifact'],
  ['nothing', Buffer.alloc(0), 'bad_artifact'],
])('%s is refused', async (_name, blob, code) => {
  await expect(decodeTurns(blob)).rejects.toMatchObject({ code });
});
