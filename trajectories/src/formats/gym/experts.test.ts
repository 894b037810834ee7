/**
 * Experts from a server's answers through trajectory and artifact to `/run`, checked by NeMo RL's rule
 * (nemo_rl/environments/nemo_gym.py).
 */

import { NO_LIMITS, openLedger, openTurnClient, recordTokens } from '@swefarm/policy';
import { decodeArtifact, encodeArtifact, type Message, PolicyConfig, type Turn } from '@swefarm/shared';
import { bareArtifact, bareTrajectory, bareTurn } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { aResult } from '../../../test/result.ts';
import { answerPieces } from './answer.ts';

const ARRAYS = {
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
};
type Dtype = keyof typeof ARRAYS;
type Table = { dtype: Dtype; layers: number; topK: number; rows: number[][] };

/** A small seeded generator, so that a failing case can be repeated. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Returns the experts as NeMo RL's server sends them on the message: a text with a row for each token, the last row padded. */
function envelope({ dtype, layers, topK, rows }: Table, total: number): string {
  const pad = Array.from({ length: layers * topK }, (_, at) => at % topK);
  const values = new ARRAYS[dtype]([...rows.slice(0, total - 1), pad].flat());
  return `nrlre1:${dtype}:${total}x${layers}x${topK}:${Buffer.from(values.buffer).toString('base64')}`;
}

/** Returns the experts as vLLM sends them on the choice: a numpy file in base64, without the row of the last token. */
function npy({ dtype, layers, topK, rows }: Table, total: number): string {
  const descr = { int8: '|i1', uint8: '|u1', int16: '<i2', uint16: '<u2', int32: '<i4' }[dtype];
  const dict = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${total - 1}, ${layers}, ${topK}), }`;
  const head = Buffer.from(`\x93NUMPY\x01\x00${String.fromCharCode(118, 0)}${dict.padEnd(117)}\n`, 'latin1');
  const values = new ARRAYS[dtype](rows.slice(0, total - 1).flat());
  return Buffer.concat([head, Buffer.from(values.buffer)]).toString('base64');
}

type Played = {
  answer: Record<string, unknown>;
  sent: string[];
  messages: Message[];
  turns: Turn[];
  ids: number[][];
};

/** Plays turns of random lengths in mode `echo`, stores them, and reads the answer to /run from the artifact. */
async function play(
  table: Table,
  tell: (table: Table, total: number) => string | null,
  seed: number,
  where: string,
): Promise<Played> {
  const random = randomFrom(seed);
  const echo = { urls: ['http://h/v1'], model: 'm', token_mode: 'echo', require_tokens: true };
  const config = PolicyConfig.parse(echo);
  const speaker = await openTurnClient(config, { rolloutId: 'run.i.0', limits: NO_LIMITS });
  const ledger = openLedger();
  const messages: Message[] = [{ role: 'user', content: 'go' }];
  const turns: Turn[] = [];
  const sent: string[] = [];
  const ids: number[][] = [];
  let seen: number[] = [];
  for (let turn = 1; turn <= 6; turn++) {
    const prompt = [...seen, ...Array.from({ length: 1 + random(40) }, () => random(50_000))];
    const generated = Array.from({ length: 1 + random(30) }, () => random(50_000));
    const told = tell(table, prompt.length + generated.length);
    const choice = {
      message: {
        ...{ role: 'assistant', content: `answer ${turn}`, prompt_token_ids: prompt },
        ...{ generation_token_ids: generated, generation_log_probs: generated.map(() => -0.5) },
        ...(where === 'message' && told !== null ? { routed_experts: told } : {}),
      },
      ...(where === 'choice' ? { routed_experts: told } : {}),
    };
    const reply = await speaker.ask(messages, [], async (_route, body) => {
      sent.push(Buffer.concat(body.map((piece) => Buffer.from(piece))).toString());
      return Buffer.from(JSON.stringify({ choices: [choice] }));
    });
    const message = messages.push(reply.message) - 1;
    messages.push({ role: 'user', content: `seen ${turn}` });
    const tokens = recordTokens(ledger, reply, turn, true, 'keep');
    turns.push(bareTurn(message, { tokens }));
    seen = [...prompt, ...generated];
    ids.push(seen);
  }
  const trajectory = bareTrajectory({ token_mode: 'echo', messages, turns });
  const content = await decodeArtifact(await encodeArtifact(bareArtifact({ trajectory, patch: '' })));
  const pieces = answerPieces({
    ...{ row: { responses_create_params: { input: [] } }, result: aResult(), content, repo: 'a/b' },
    ...{ evaluationTimeout: 1, unjudged: null, lines: 'all', trajectory: true },
  });
  const answer = JSON.parse(Buffer.concat([...pieces].map((piece) => Buffer.from(piece))).toString());
  return { answer, sent, messages, turns, ids };
}

type Item = { prompt_token_ids?: number[]; generation_token_ids?: number[]; routed_experts?: string };
const itemsOf = ({ answer }: Played): Item[] =>
  (answer.response as { output: Item[] }).output.filter((item) => item.generation_token_ids !== undefined);

/** Decodes `routed_experts` as `decode_routed_experts` of NeMo RL does: rows of signed integers. */
function decode(text = ''): { dtype: string; shape: number[]; rows: number[][] } {
  const [magic, dtype = '', shape = '', data = ''] = text.split(':');
  expect(magic).toBe('nrlre1');
  expect(['int8', 'int16', 'int32']).toContain(dtype);
  const sizes = shape.split('x').map(Number);
  const [count = 0, layers = 0, topK = 0] = sizes;
  const bytes = new Uint8Array(Buffer.from(data, 'base64'));
  const values = [...new ARRAYS[dtype as Dtype](bytes.buffer)];
  expect(values).toHaveLength(count * layers * topK);
  const rows = Array.from({ length: count }, (_, at) =>
    values.slice(at * layers * topK, (at + 1) * layers * topK),
  );
  return { dtype, shape: sizes, rows };
}

/** Returns the rows of the message log that NeMo RL builds; the last row of each answer comes from the next prompt. */
function trained(items: readonly Item[]): number[][] {
  const log: number[][] = [];
  let seen = 0;
  for (const item of items) {
    const { rows } = decode(item.routed_experts);
    const prompt = item.prompt_token_ids?.length ?? 0;
    const total = prompt + (item.generation_token_ids?.length ?? 0);
    expect(rows.length).toBeGreaterThanOrEqual(total);
    if (seen > 0) log[seen - 1] = rows[seen - 1] ?? [];
    log.push(...rows.slice(seen, total));
    seen = total;
  }
  return log;
}

const tableOf = (dtype: Dtype, largest: number, seed: number): Table => {
  const random = randomFrom(seed);
  const [layers, topK] = [1 + random(5), 1 + random(4)];
  const row = () => Array.from({ length: layers * topK }, () => random(largest + 1));
  return { dtype, layers, topK, rows: Array.from({ length: 500 }, row) };
};

describe.each<[string, Dtype, number, typeof envelope, string, string]>([
  ["NeMo RL's server", 'int8', 127, envelope, 'message', 'int8'],
  ["NeMo RL's server", 'int16', 30_000, envelope, 'message', 'int16'],
  ["NeMo RL's server", 'int32', 100_000, envelope, 'message', 'int32'],
  ['vLLM, few experts', 'uint8', 127, npy, 'choice', 'int8'],
  ['vLLM, 256 experts', 'uint8', 255, npy, 'choice', 'int16'],
  ['vLLM', 'uint16', 600, npy, 'choice', 'int16'],
])('%s, %s up to %i', (_, dtype, largest, tell, where, wire) => {
  test.each([1, 2, 3])('bit for bit over six turns, seed %i', async (seed) => {
    const table = tableOf(dtype, largest, seed);
    const played = await play(table, tell, seed, where);
    const items = itemsOf(played);
    expect(items).toHaveLength(6);
    items.forEach((item, at) => {
      const total = played.ids[at]?.length ?? 0;
      const read = decode(item.routed_experts);
      expect(read.dtype).toBe(wire);
      expect(read.shape).toEqual([total, table.layers, table.topK]);
      // Every row of prompt and answer, and the padding of the last token.
      const pad = Array.from({ length: table.layers * table.topK }, (_, index) => index % table.topK);
      expect(read.rows).toEqual([...table.rows.slice(0, total - 1), pad]);
    });
    const all = played.ids.at(-1)?.length ?? 0;
    expect(trained(items).slice(0, -1)).toEqual(table.rows.slice(0, all - 1));
  });
});

test('stored and sent data does not grow with turns: each row once, none in messages', async () => {
  const table = tableOf('int16', 1000, 5);
  const withThem = await play(table, envelope, 5, 'message');
  const without = await play(table, () => null, 5, 'message');
  expect(withThem.sent).toEqual(without.sent);
  expect(withThem.messages).toEqual(without.messages);
  const sizes = withThem.turns.map(({ tokens }) => tokens?.routed_experts?.rows.length ?? 0);
  const stored = sizes.reduce((sum, size) => sum + size);
  const row = table.layers * table.topK * 2;
  // Each turn stores one row twice: the padding of its last token, and later the true row.
  expect(stored).toBe(((withThem.ids.at(-1)?.length ?? 0) + 5) * row);
  expect(itemsOf(without).some((item) => 'routed_experts' in item)).toBe(false);
  expect(JSON.stringify(withThem.answer.ng_trajectory)).not.toContain('nrlre1');
});

test('a turn without them leaves its own item without, and the later ones whole', async () => {
  const table = tableOf('int16', 1000, 6);
  let turn = 0;
  const played = await play(table, (of, total) => (++turn === 3 ? null : envelope(of, total)), 6, 'message');
  const lacking = itemsOf(played).map((item) => !('routed_experts' in item));
  expect(lacking.flatMap((lacks, at) => (lacks ? [at] : []))).toEqual([2]);
  expect(lacking).toHaveLength(6);
  const last = decode(itemsOf(played).at(-1)?.routed_experts);
  expect(last.rows.slice(0, -1)).toEqual(table.rows.slice(0, last.rows.length - 1));
});
