import type { TurnTokens } from '@swefarm/shared';
import { RolloutFailure } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { cumulative, openLedger, recordTokens } from './ledger.ts';

const reply = (prompt: number[] | null, generation: number[] | null, more: Record<string, unknown> = {}) => ({
  prompt_token_ids: prompt && Int32Array.from(prompt),
  generation_token_ids: generation && Int32Array.from(generation),
  generation_log_probs: generation && Float32Array.from(generation, (id) => -id / 100),
  usage: prompt && generation ? { prompt_tokens: prompt.length, completion_tokens: generation.length } : null,
  ...more,
});
const rebuilt = (turns: (TurnTokens | null)[]) =>
  [...cumulative(turns)].map(({ prompt, generation }) => [Array.from(prompt), Array.from(generation)]);

test('only new tokens are stored, and whole prompts are restored', () => {
  const ledger = openLedger();
  const turns = [
    recordTokens(ledger, reply([1, 2, 3], [10, 11]), 1, true),
    recordTokens(ledger, reply([1, 2, 3, 10, 11, 4, 5], [12]), 2, true),
    recordTokens(ledger, reply([1, 2, 3, 10, 11, 4, 5, 12], [13, 14]), 3, true),
  ];
  expect(turns.map((turn) => turn?.prefix_length)).toEqual([0, 5, 8]);
  expect(turns.map((turn) => Array.from(turn?.prompt_suffix ?? []))).toEqual([[1, 2, 3], [4, 5], []]);
  expect(rebuilt(turns)).toEqual([
    [
      [1, 2, 3],
      [10, 11],
    ],
    [[1, 2, 3, 10, 11, 4, 5], [12]],
    [
      [1, 2, 3, 10, 11, 4, 5, 12],
      [13, 14],
    ],
  ]);
  expect(ledger.contiguous).toBe(true);
});

describe('a prompt that does not continue the earlier tokens', () => {
  const first = reply([1, 2, 3], [10, 11]);
  test.each([
    ['in the prompt', [1, 9, 3, 10, 11, 4], /turn 2: .* token 1 of 5 was 2, is 9/],
    ['in what was generated', [1, 2, 3, 10, 99, 4], /turn 2: .* token 4 of 5 was 11, is 99/],
    ['by being shorter', [1, 2, 3, 10], /turn 2: .* token 4 of 5 was 11, is the end of the prompt/],
  ])('%s: a failure that names turn and tokens', (_, prompt, message) => {
    const ledger = openLedger();
    recordTokens(ledger, first, 1, true);
    const second = () => recordTokens(ledger, reply(prompt, [12]), 2, true);
    expect(second).toThrow(RolloutFailure);
    expect(second).toThrow(message);
    expect(second).toThrow(expect.objectContaining({ failureClass: 'policy_tokens' }));
  });
  test('is stored from the first difference when tokens are not required', () => {
    const ledger = openLedger();
    const turns = [
      recordTokens(ledger, first, 1, false),
      recordTokens(ledger, reply([1, 2, 3, 10, 99, 4], [12]), 2, false),
      recordTokens(ledger, reply([1, 2, 3, 10, 99, 4, 12, 5], [13]), 3, false),
    ];
    expect(turns.map((turn) => turn?.prefix_length)).toEqual([0, 4, 7]);
    expect(ledger.contiguous).toBe(false);
    expect(rebuilt(turns)[2]).toEqual([[1, 2, 3, 10, 99, 4, 12, 5], [13]]);
    expect(rebuilt(turns)[1]).toEqual([[1, 2, 3, 10, 99, 4], [12]]);
  });
});

describe('tokens that cannot be used', () => {
  const usage = (prompt_tokens: number, completion_tokens: number) => ({
    usage: { prompt_tokens, completion_tokens },
  });
  const SHORT = { generation_log_probs: new Float32Array(1) };
  test.each([
    ['no prompt ids', reply(null, [1]), /no prompt token ids/],
    ['no generated ids', reply([1], null), /no generated token ids/],
    ['nothing generated', reply([1], []), /no generated token ids/],
    ['no log-probabilities', reply([1], [2], { generation_log_probs: null }), /no usable log-prob/],
    ['one log-probability short', reply([1], [2, 3], SHORT), /2 generated tokens but 1/],
    ['usage of the answer', reply([1], [2], usage(1, 2)), /usage reports 2/],
    ['usage of the prompt', reply([1], [2], usage(7, 1)), /usage reports 7/],
  ])('%s', (_, bad, message) => {
    expect(() => recordTokens(openLedger(), bad, 3, true)).toThrow(message);
    expect(() => recordTokens(openLedger(), bad, 3, true)).toThrow(/^turn 3: /);
    expect(() => recordTokens(openLedger(), bad, 3, false)).not.toThrow();
  });
  test('a turn without tokens leaves no gap: the next prompt contains them', () => {
    const ledger = openLedger();
    const turns = [
      recordTokens(ledger, reply([1, 2], [10]), 1, false),
      recordTokens(ledger, reply(null, null), 2, false),
      recordTokens(ledger, reply([1, 2, 10, 3, 11, 4], [12]), 3, false),
    ];
    expect(turns[1]).toBeNull();
    expect(ledger.contiguous).toBe(true);
    expect(rebuilt(turns)).toEqual([
      [[1, 2], [10]],
      [[1, 2, 10, 3, 11, 4], [12]],
    ]);
  });
});

test('storage is linear: 88 turns to 60,000 tokens need under 1 MB', () => {
  const ledger = openLedger();
  const all: number[] = [];
  let bytes = 0;
  for (let turn = 1; turn <= 88; turn++) {
    for (let i = 0; i < 480; i++) all.push(i);
    const generation = Array.from({ length: 200 }, (_, i) => i + turn);
    const stored = recordTokens(ledger, reply(all, generation), turn, true);
    all.push(...generation);
    for (const list of [stored?.prompt_suffix, stored?.generation, stored?.log_probs]) {
      bytes += list?.buffer.byteLength ?? 0;
    }
  }
  expect(ledger.length).toBe(59_840);
  expect(bytes).toBeLessThan(350_000);
});
