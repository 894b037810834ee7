import type { Turn } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { sequencesOf } from './sequences.ts';
import { safetensorsPieces } from './tokens.ts';

const turn = (prefix_length: number, suffix: number[], generation: number[]): Turn => ({
  message: 0,
  finish_reason: 'stop',
  model_seconds: 1,
  usage: null,
  policy_version: { start: null, end: null },
  tokens: {
    prefix_length,
    prompt_suffix: Int32Array.from(suffix),
    generation: Int32Array.from(generation),
    log_probs: Float32Array.from(generation, (id) => -id),
  },
  commands: [],
});

test('a contiguous conversation is one sequence, masked where the policy did not generate', () => {
  const [only, ...more] = sequencesOf({ turns: [turn(0, [1, 2], [3]), turn(3, [4], [5, 6])] });
  expect(more).toEqual([]);
  expect(only).toEqual({
    ids: Int32Array.from([1, 2, 3, 4, 5, 6]),
    mask: Uint8Array.from([0, 0, 1, 0, 1, 1]),
    logProbs: Float32Array.from([0, 0, -3, 0, -5, -6]),
    versions: Int32Array.from([-1, -1, -1, -1, -1, -1]),
    names: [],
    answers: [
      { start: 2, stop: 3, finish_reason: 'stop', version: null },
      { start: 4, stop: 6, finish_reason: 'stop', version: null },
    ],
    experts: [],
  });
});

test('each token has the policy version that sampled it', () => {
  const spans = [
    { version: 'w2', tokens: 1 },
    { version: null, tokens: 1 },
    { version: 'w1', tokens: 1 },
  ];
  const same = { ...turn(0, [1], [2]), policy_version: { start: 'w1', end: 'w1' } };
  const crossed = { ...turn(2, [3], [4]), policy_version: { start: 'w1', end: 'w2' } };
  const [only] = sequencesOf({ turns: [same, crossed, { ...turn(4, [5], [6, 7, 8]), spans }] });
  expect(only).toMatchObject({
    names: ['w1', 'w2'],
    versions: Int32Array.from([-1, 0, -1, -1, -1, 1, -1, 0]),
  });
});

test('a prompt that changes earlier turns begins a new sequence, and no token counts twice', () => {
  const sequences = sequencesOf({ turns: [turn(0, [1, 2], [3, 4]), turn(3, [9], [5])] });
  expect(sequences.map(({ ids }) => [...ids])).toEqual([
    [1, 2, 3, 4],
    [1, 2, 3, 9, 5],
  ]);
  expect(sequences.map(({ mask }) => [...mask])).toEqual([
    [0, 0, 1, 1],
    [0, 0, 0, 0, 1],
  ]);
});

test('turns without token ids make no sequence', () => {
  expect(sequencesOf({ turns: [{ ...turn(0, [], []), tokens: null }] })).toEqual([]);
});

test('a safetensors file is a length, a header that names each tensor, and their bytes', () => {
  const rows = sequencesOf({ turns: [turn(0, [1, 2], [3])] }).map((one) => ({ ...one, label: { a: 'ü' } }));
  const bytes = Buffer.concat([...safetensorsPieces([...rows, ...rows])]);
  const size = Number(bytes.readBigUInt64LE());
  expect(size % 8).toBe(0);
  const header = JSON.parse(bytes.subarray(8, 8 + size).toString());
  const [from, to] = header.input_ids.data_offsets;
  const data = bytes.subarray(8 + size);
  expect(data.length).toBe(header.loss_mask.data_offsets[1]);
  expect([...new Int32Array(data.buffer.slice(data.byteOffset + from, data.byteOffset + to))]).toEqual([
    1, 2, 3, 1, 2, 3,
  ]);
  expect(header.offsets.shape).toEqual([3]);
  expect(JSON.parse(header.__metadata__.rows)).toEqual([{ a: 'ü' }, { a: 'ü' }]);
});
