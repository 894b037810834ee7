/** The experts of a mixture-of-experts model in every server's form. */

import { MOST } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { parseCompletion } from '../endpoint/completion.ts';
import { parseReply } from '../endpoint/reply.ts';
import { type ExpertMode, expertModeOf } from './expertrows.ts';
import { extractExperts, type RoutedExperts } from './experts.ts';
import { openLedger, recordTokens } from './ledger.ts';

const bytesOf = (values: Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array): Buffer =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength);

const nrlre = (values: Parameters<typeof bytesOf>[0], dtype: string, shape: readonly number[]): string =>
  `nrlre1:${dtype}:${shape.join('x')}:${bytesOf(values).toString('base64')}`;

function npy(
  values: Parameters<typeof bytesOf>[0],
  descr: string,
  shape: readonly number[],
  order = 'False',
): string {
  const dict = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${shape.join(', ')}), }`;
  const text = `${dict.padEnd(117)}\n`;
  const head = Buffer.from(`\x93NUMPY\x01\x00${String.fromCharCode(text.length, 0)}${text}`, 'latin1');
  return Buffer.concat([head, bytesOf(values)]).toString('base64');
}

/** Returns ids that encode their position: row, layer, rank. */
const ids = (rows: number, layers: number, topK: number, from = 0) =>
  Int16Array.from({ length: rows * layers * topK }, (_, at) => (from * layers * topK + at) % 30_000);

function answer(experts: unknown, where: 'message' | 'choice' = 'message', more: object = {}): Buffer {
  const field = { routed_experts: experts };
  const message = { role: 'assistant', content: 'é', ...(where === 'message' ? field : {}) };
  const choice = { message, ...(where === 'choice' ? field : {}) };
  return Buffer.from(JSON.stringify({ ...more, choices: [choice] }));
}

const readable = (body: Buffer): RoutedExperts => {
  const { routed_experts: experts } = parseReply(body);
  if (!experts || experts.flaw !== undefined) throw new Error(`not read: ${experts?.flaw}`);
  return experts;
};

describe('forms', () => {
  const values = ids(7, 3, 2);
  test.each([
    ["NeMo RL's, on the message", answer(nrlre(values, 'int16', [7, 3, 2]))],
    ["vLLM's, on the choice", answer(npy(values, '<i2', [7, 3, 2]), 'choice')],
    [
      "vLLM's, the prompt's apart",
      answer(npy(values.slice(24), '<i2', [3, 3, 2]), 'choice', {
        prompt_routed_experts: npy(values.slice(0, 24), '<i2', [4, 3, 2]),
      }),
    ],
  ])('%s', (_, body) => {
    const experts = readable(body);
    expect(experts).toMatchObject({ dtype: 'int16', rows: 7, layers: 3, top_k: 2 });
    for (let from = 0; from < 7; from++) {
      for (let to = from + 1; to <= 7; to++) {
        expect(Buffer.from(experts.decode(from, to))).toEqual(bytesOf(values.slice(from * 6, to * 6)));
      }
    }
  });
  test.each([
    ['int8', '|i1', Int8Array],
    ['uint8', '|u1', Uint8Array],
    ['uint16', '<u2', Uint16Array],
    ['int32', '<i4', Int32Array],
  ] as const)('%s', (dtype, descr, of) => {
    const values = new of(ids(5, 3, 1).map((id) => id * 7));
    const experts = readable(answer(npy(values, descr, [5, 3, 1]), 'choice'));
    expect(experts).toMatchObject({ dtype, rows: 5 });
    expect(Buffer.from(experts.decode(0, 5))).toEqual(bytesOf(values));
  });
});

test('from the completions endpoint', () => {
  const choice = { text: 'x', token_ids: [1], routed_experts: npy(ids(7, 3, 2), '<i2', [7, 3, 2]) };
  const { routed_experts: experts } = parseCompletion(Buffer.from(JSON.stringify({ choices: [choice] })));
  expect(experts).toMatchObject({ dtype: 'int16', rows: 7, layers: 3, top_k: 2 });
});

test('experts reach neither the message nor the JSON parser', () => {
  const plain = parseReply(answer(undefined)).message;
  const text = nrlre(ids(7, 3, 2), 'int16', [7, 3, 2]);
  const { json } = extractExperts(answer(text));
  expect(json.toString()).not.toContain('nrlre1');
  expect(json.length).toBeLessThan(answer(undefined).length + 40);
  for (const experts of [text, 'no base64 at all', '"\\"quoted', [[[1, 2]]], { a: 1 }, null, 7]) {
    expect(parseReply(answer(experts)).message).toEqual(plain);
    expect(parseReply(answer(experts, 'choice')).message).toEqual(plain);
  }
  const flawed = extractExperts(answer(text, 'choice', { prompt_routed_experts: [[[1, 2]]] }));
  expect(flawed.experts).toEqual({ flaw: 'it is no text of base64' });
  expect(flawed.json.toString()).not.toContain('nrlre1');
  // A text that contains the key stays a text.
  const content = 'a "routed_experts": "nrlre1:x" b';
  const mentioned = JSON.stringify({ choices: [{ message: { content } }] });
  expect(parseReply(Buffer.from(mentioned)).message.content).toBe(content);
});

test.each<[string, unknown, RegExp]>([
  ['a list', [[[1, 2]]], /no text of base64/],
  ['escapes', 'a"b', /no text of base64/],
  ['another text', 'AAAA', /neither/],
  ['no text at all', '', /neither/],
  ['floats', npy(ids(2, 1, 1), '<f2', [2, 1, 1]), /it is <f2/],
  ['two dimensions', npy(ids(2, 1, 1), '<i2', [2, 1]), /\[2, 1\]/],
  ['columns first', npy(ids(2, 1, 1), '<i2', [2, 1, 1], 'True'), /fortran_order/],
  [
    'fewer bytes than the header requires',
    nrlre(ids(2, 1, 1), 'int16', [3, 1, 1]),
    /4 bytes, and 3 rows .* have 6/,
  ],
  ['more bytes than the header requires', nrlre(ids(4, 1, 1), 'int16', [3, 1, 1]), /8 bytes/],
  ['a giant', 'nrlre1:int32:999999999x999999999x999999999:AAAA', /3 bytes/],
  ['no rows', 'nrlre1:int8:0x1x1:', /expected are integers/],
])('%s: not read, and mentioned why', (_, experts, why) => {
  expect(parseReply(answer(experts)).routed_experts).toEqual({ flaw: expect.stringMatching(why) });
});

type Lengths = [prompt: number, answer: number];
const TURNS: Lengths[] = [
  [5, 2],
  [3, 4],
  [1, 1],
];

/** Records the turns of a rollout and returns the stored experts. `expertsOf`: experts of an answer, by number of tokens so far. */
function play(turns: readonly Lengths[], mode: ExpertMode, expertsOf: (total: number) => string | undefined) {
  const ledger = openLedger();
  let seen = 0;
  return turns.map(([prompt, generated], at) => {
    const total = seen + prompt + generated;
    const all = Int32Array.from({ length: total }, (_, id) => id);
    const experts = expertsOf(total);
    const reply = {
      ...parseReply(answer(experts)),
      prompt_token_ids: all.slice(0, seen + prompt),
      generation_token_ids: all.slice(seen + prompt),
      generation_log_probs: new Float32Array(generated),
    };
    seen = total;
    return recordTokens(ledger, reply, at + 1, true, mode)?.routed_experts;
  });
}

describe('stored rows', () => {
  const whole = (total: number) => nrlre(ids(total, 2, 2), 'int16', [total, 2, 2]);
  test('are the new rows and the row that replaces the padding of the last token', () => {
    const stored = play(TURNS, 'keep', whole);
    expect(stored.map((one) => [one?.start, one && one.rows.length / 8])).toEqual([
      [0, 7],
      [6, 8],
      [13, 3],
    ]);
    const last = stored.at(-1);
    expect(Buffer.from(last?.rows ?? [])).toEqual(bytesOf(ids(3, 2, 2, 13)));
  });
  test('a turn without experts leaves a gap that the next turn fills', () => {
    const stored = play(TURNS, 'keep', (total) => (total === 14 ? undefined : whole(total)));
    expect(stored.map((one) => one && [one.start, one.rows.length / 8])).toEqual([
      [0, 7],
      undefined,
      [6, 10],
    ]);
  });
  test('are none without the setting', () => {
    expect(play([[5, 2]], 'drop', whole)).toEqual([undefined]);
    expect(play([[5, 2]], 'drop', () => 'rubbish')).toEqual([undefined]);
    expect(play([[5, 2]], 'keep', () => undefined)).toEqual([undefined]);
  });
  test.each<[string, ExpertMode, (total: number) => string | undefined, RegExp]>([
    ['none', 'require', () => undefined, /turn 1: routed_experts: there are none/],
    ['none in turn 2', 'require', (total) => (total > 7 ? undefined : whole(total)), /turn 2: .*none/],
    ['too few', 'keep', (total) => whole(total - 2), /5 rows for 7 tokens, .*cached prefix/],
    ['too many', 'keep', (total) => whole(total + 1), /8 rows for 7 tokens/],
    ['unreadable', 'keep', () => 'AAAA', /turn 1: routed_experts: it is neither/],
    ['no base64', 'keep', (total) => whole(total).replace(/.{9}(?=.{8}$)/, '?????????'), /no text of base64/],
    [
      'another model',
      'keep',
      (total) => (total > 7 ? nrlre(ids(total, 1, 4), 'int16', [total, 1, 4]) : whole(total)),
      /turn 2: .*int16 of 1 layers x 4, and earlier turns had int16 of 2 layers x 2/,
    ],
  ])('%s: the rollout fails by name', (_, mode, expertsOf, why) => {
    const playing = () => play(TURNS.slice(0, 2), mode, expertsOf);
    expect(playing).toThrow(why);
    expect(playing).toThrow(expect.objectContaining({ failureClass: 'policy_tokens' }));
  });
  test('more than a rollout may have throw with both sizes, and are not decoded', () => {
    const ledger = openLedger();
    const experts: RoutedExperts = {
      ...{ dtype: 'int32' as const, rows: 70_000, layers: 100, top_k: 8 },
      decode: () => {
        throw new Error('decoded');
      },
    };
    const reply = {
      prompt_token_ids: new Int32Array(69_999),
      generation_token_ids: new Int32Array(1),
      generation_log_probs: new Float32Array(1),
      usage: null,
      routed_experts: experts,
    };
    expect(() => recordTokens(ledger, reply, 1, true, 'keep')).toThrow(
      `224000000 bytes of experts, and the limit is ${MOST.expertBytes}`,
    );
  });
});

test.each([
  ['auto', false, 'drop'],
  ['auto', true, 'keep'],
  ['require', false, 'require'],
  ['drop', true, 'drop'],
] as const)('%s with require_tokens %s: %s', (routed_experts, require_tokens, mode) => {
  expect(expertModeOf({ routed_experts, require_tokens })).toBe(mode);
});
