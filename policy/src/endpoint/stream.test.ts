import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChatStream } from './chatstream.ts';
import { parseCompletion } from './completion.ts';
import { CompletionStream } from './completionstream.ts';
import { createEventReader } from './events.ts';
import { parseReply } from './reply.ts';

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const DONE = 'data: [DONE]\n\n';

/** Feeds a text to a sink in pieces, cut at the given byte positions. */
function give(
  sink: { take(bytes: Uint8Array): unknown },
  text: string,
  positions: readonly number[] = [],
): void {
  const bytes = Buffer.from(text);
  const ends = [...positions.map((position) => position % bytes.length).sort((a, b) => a - b), bytes.length];
  let from = 0;
  for (const end of ends) {
    sink.take(bytes.subarray(from, end));
    from = end;
  }
}

describe('events', () => {
  const read = (text: string, positions: number[] = [], most?: number) => {
    const received: string[] = [];
    const take = createEventReader((data) => received.push(data.toString()), most);
    give({ take }, text, positions);
    return received;
  };
  test('are the same for any pieces of bytes', () => {
    const text = ': ping\n\nevent: x\nid: 7\ndata: {"a":"ü€😀"}\r\n\r\ndata:b\n\ndata: [DONE]\n';
    fc.assert(
      fc.property(fc.array(fc.nat(text.length * 2)), (positions) => {
        expect(read(text, positions)).toEqual(['{"a":"ü€😀"}', 'b', '[DONE]']);
      }),
    );
  });
  test('a line above the limit is refused', () => {
    expect(() => read(`data: ${'x'.repeat(200)}`, [50, 100, 150], 100)).toThrow(/over 100 bytes/);
    expect(read(`data: ${'x'.repeat(200)}\n`, [], 100)).toHaveLength(1);
  });
});

const tokens = (ids: number[], words: string[] = ids.map(String)) => ({
  token_ids: ids,
  logprobs: { token_logprobs: ids.map((id) => -id / 8), tokens: words, text_offset: ids },
});
const piece = (text: string, ids: number[], more: object = {}, words = [text]) =>
  event({ choices: [{ index: 0, text, ...tokens(ids, words), finish_reason: null, ...more }] });
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const ENDED = event({ choices: [], usage }) + DONE;
const END = { finish_reason: 'stop' };

describe('a text completion', () => {
  /** A stream in vLLM's form: prompt ids with the first tokens, no text for an incomplete character, usage last. */
  const stream = [
    piece('o', [8], { prompt_token_ids: [1, 2, 3] }),
    piece('', [9]),
    ': a proxy says that it lives\n\n',
    piece('k ü', [10]),
    piece('', [16], END),
    ENDED,
  ].join('');

  test('equals the unstreamed answer', () => {
    const whole = parseCompletion(
      Buffer.from(
        JSON.stringify({
          choices: [{ text: 'ok ü', ...tokens([8, 9, 10, 16]), prompt_token_ids: [1, 2, 3], ...END }],
          usage,
        }),
      ),
    );
    fc.assert(
      fc.property(fc.array(fc.nat(2000)), (positions) => {
        const reader = new CompletionStream();
        give(reader, stream, positions);
        expect(reader.end()).toEqual(whole);
        expect(reader.tokens).toBe(4);
      }),
    );
  });
  test('of SGLang has null fields, log-probabilities of new tokens, and prompt ids once', () => {
    const reader = new CompletionStream();
    const empty = { matched_stop: null, hidden_states: null, prompt_token_ids: null };
    give(
      reader,
      piece('a', [5, 6], { ...empty, prompt_token_ids: [1] }) + piece('b', [7], { ...empty, ...END }),
    );
    give(reader, event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 3 } }) + DONE);
    expect(reader.end()).toMatchObject({
      text: 'ab',
      prompt_token_ids: Int32Array.of(1),
      generation_token_ids: Int32Array.of(5, 6, 7),
      usage: { prompt_tokens: 1, completion_tokens: 3 },
    });
  });
  test('that is cut throws, and its part has the received tokens', () => {
    const reader = new CompletionStream();
    expect(reader.part()).toBeNull();
    give(reader, piece('one', [8]) + piece(' two', [9]));
    expect(() => reader.end()).toThrow(/ended before the answer did, after 2 tokens/);
    expect(reader.part()).toEqual({
      text: 'one two',
      ids: Int32Array.of(8, 9),
      logProbs: Float32Array.of(-1, -1.125),
    });
  });
  test('that is cut has only whole characters in its part', () => {
    const partial = new CompletionStream();
    give(partial, piece('one', [8]) + piece('', [9]));
    expect(partial.part()).toMatchObject({ text: 'one', ids: Int32Array.of(8) });
    const torn = new CompletionStream();
    give(torn, piece('one', [8]) + piece('\ufffd', [9]));
    expect(torn.part()).toMatchObject({ text: 'one', ids: Int32Array.of(8) });
    give(torn, piece('x', [10]));
    expect(torn.part()).toMatchObject({ text: 'one\ufffdx', ids: Int32Array.of(8, 9, 10) });
  });
  test.each([
    ['the first part of a character ends a chunk', [' two', ''], ['é three', ' three']],
    ['that part with a space before it', [' two ', ' \ufffd'], ['é three', ' three']],
    ['text that a text of `stop` may begin with', [' tw', 'o'], ['o three', ' three']],
  ])('%s: its ids were told, its text was not', (_, [text = '', last = ''], [next = '', word = '']) => {
    const reader = new CompletionStream();
    give(reader, piece('one', [8]) + piece(text, [9, 10], {}, [' two', last]));
    expect(reader.part()).toMatchObject({ text: 'one', ids: Int32Array.of(8) });
    give(reader, piece(next, [11, 12], {}, ['?', word]));
    expect(reader.part()).toMatchObject({ ids: Int32Array.of(8, 9, 10, 11, 12) });
  });
  test.each([
    ['are not told', undefined],
    ['are told as ids', ['token_id:9', 'token_id:10']],
  ])('where the texts of tokens %s, only a chunk of one token can be relied on', (_, words) => {
    const without = (text: string, ids: number[]) => {
      const logprobs = { token_logprobs: ids.map(() => -1), ...(words ? { tokens: words } : {}) };
      return event({ choices: [{ text, token_ids: ids, logprobs }] });
    };
    const reader = new CompletionStream();
    give(reader, without('one', [8]) + without(' two', [9, 10]));
    expect(reader.part()).toMatchObject({ text: 'one', ids: Int32Array.of(8) });
    give(reader, without('!', [11]));
    expect(reader.part()).toMatchObject({ text: 'one two!', ids: Int32Array.of(8, 9, 10, 11) });
  });
  test.each([
    ['a chunk without ids', event({ choices: [{ text: 'x', ...tokens([1]), token_ids: null }] })],
    ['a chunk without log-probabilities', event({ choices: [{ text: 'x', token_ids: [1] }] })],
    ['a log-probability that is no number', piece('x', [1], { logprobs: { token_logprobs: [null] } })],
    ['fewer log-probabilities than ids', piece('x', [1, 2], { logprobs: { token_logprobs: [-1] } })],
  ])('%s: nothing of it is kept', (_, bad) => {
    const reader = new CompletionStream();
    give(reader, piece('one', [8]) + bad);
    expect(reader.part()).toBeNull();
  });
  test('throws for an error event, a chunk that is no object, and missing ids', () => {
    const broken = event({ error: { message: 'the engine is dead', code: 500 } });
    expect(() => give(new CompletionStream(), piece('a', [1]) + broken)).toThrow(/the engine is dead/);
    expect(() => give(new CompletionStream(), 'data: {"choices\n\n')).toThrow(/not JSON/);
    expect(() => give(new CompletionStream(), 'data: 7\n\n')).toThrow(/no object/);
    expect(() => give(new CompletionStream(), event({ choices: [{ index: 0 }] }))).toThrow(/no text/);
    const silent = new CompletionStream();
    give(silent, event({ choices: [{ text: 'a', finish_reason: 'stop' }] }) + DONE);
    expect(() => silent.end()).toThrow(/no token ids/);
  });
  test('comments do not count as events', () => {
    const reader = new CompletionStream();
    expect(reader.take(Buffer.from(': ping\n\n'))).toBe(false);
    expect(reader.take(Buffer.from(piece('a', [1])))).toBe(true);
  });
  test('a token costs the same at any length', () => {
    const reader = new CompletionStream();
    const many = Buffer.from(piece('word ', [7]).repeat(1000));
    const times = Array.from({ length: 200 }, () => {
      const from = process.threadCpuUsage();
      reader.take(many);
      const { user, system } = process.threadCpuUsage(from);
      return (user + system) / 1000;
    });
    expect(reader.tokens).toBe(200_000);
    const median = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1] ?? 0;
    expect(median(times.slice(-50))).toBeLessThan(10 * median(times.slice(0, 50)) + 1);
  });
});

describe('a chat completion', () => {
  const delta = (change: object, more: object = {}) =>
    event({ choices: [{ index: 0, delta: change, finish_reason: null, ...more }] });
  test('has the text, thinking, unknown fields and ids of the unstreamed answer', () => {
    const scored = (ids: number[]) => ({
      token_ids: ids,
      logprobs: { content: ids.map((id) => ({ token: String(id), logprob: -id / 8 })) },
    });
    const stream = [
      event({
        choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
        prompt_token_ids: [1, 2, 3],
      }),
      delta({ reasoning: 'be' }, scored([8])),
      delta({ reasoning: 'cause', notes: [{ a: 1 }] }, scored([9])),
      delta({ content: 'o', notes: [{ b: 2 }] }, scored([10])),
      delta({ content: 'k', refusal: null }, { ...scored([16]), finish_reason: 'stop' }),
      ENDED,
    ].join('');
    const whole = {
      choices: [
        {
          message: { role: 'assistant', content: 'ok', reasoning: 'because', notes: [{ a: 1 }, { b: 2 }] },
          finish_reason: 'stop',
          ...scored([8, 9, 10, 16]),
        },
      ],
      usage,
      prompt_token_ids: [1, 2, 3],
    };
    fc.assert(
      fc.property(fc.array(fc.nat(2000)), (positions) => {
        const reader = new ChatStream();
        give(reader, stream, positions);
        expect(reader.end()).toEqual(parseReply(Buffer.from(JSON.stringify(whole))));
      }),
    );
  });
  test('tool calls in pieces', () => {
    const reader = new ChatStream();
    const call = (index: number, id: string | null, name: string | null, args: string) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }],
    });
    give(reader, delta({ role: 'assistant', content: '' }));
    give(reader, delta(call(0, 'a', 'bash', '')) + delta(call(0, null, null, '{"command":')));
    give(reader, delta(call(0, null, 'bash', '"ls"}')) + delta(call(1, 'b', 'submit_solution', '{}')));
    give(reader, delta({}, { finish_reason: 'tool_calls' }) + DONE);
    expect(reader.end()).toMatchObject({
      message: {
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } },
          { id: 'b', type: 'function', function: { name: 'submit_solution', arguments: '{}' } },
        ],
      },
      finish_reason: 'tool_calls',
      generation_token_ids: null,
      generation_log_probs: null,
    });
  });
  test('that is cut or aborted throws', () => {
    const cut = new ChatStream();
    give(cut, delta({ content: 'a' }));
    expect(() => cut.end()).toThrow(/ended before/);
    const aborted = new ChatStream();
    give(aborted, delta({ content: 'a' }, { finish_reason: 'abort' }) + DONE);
    expect(() => aborted.end()).toThrow(/broke the answer off/);
  });
});
