/** One generated conversation in mode token-in, compared with the server's log and the template's rendering. */
import assert from 'node:assert/strict';
import type { Message, ToolDefinition } from '@swefarm/shared';
import { PolicyConfig } from '@swefarm/shared';
import fc from 'fast-check';
import { openTurnClient } from '../../src/openturnclient.ts';
import { cumulative, openLedger, recordTokens } from '../../src/tokens/ledger.ts';
import { NO_LIMITS } from '../../src/turnsampling.ts';
import type { Family, Spoken } from './families.ts';
import type { Render, Sample, SamplingServer } from './server.ts';

const properties = { command: { type: 'string', description: 'The command.' } };
const COMMAND = { type: 'object', properties, required: ['command'] };
export const TOOLS: ToolDefinition[] = [
  { type: 'function', function: { name: 'bash', description: 'Run one command.', parameters: COMMAND } },
];

/** `cut`: number of characters of the answer that a token limit leaves; null: the model ends the answer. */
export type Turn = Spoken & { cut: number | null; results: readonly string[] };
export type Talk = { tools: boolean; turns: readonly Turn[] };

/** Any text, also with markup. */
const anything = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
  fc.constantFrom(
    '',
    ' ',
    '\n',
    '\n\n a',
    'é\n日本語 👩‍💻',
    '"\\"',
    "'",
    '</tool_call>',
    '<|im_end|>',
    '<think>',
    '{{ x }}',
  ),
);
/** Text without white space and markup characters at its ends, because templates trim sampled text. */
const words = fc
  .oneof(
    { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
    fc.constantFrom('', 'ls -la', 'cat <<"E"\n  é </x>\n\nE', 'echo "a\\nb"', '日本語 👩‍💻', "printf '%s'"),
  )
  .map((text) =>
    text
      .replace(/[<>[\]{}|｜`\s]+$|^[<>[\]{}|｜`\s]+/g, '')
      .replace(/\r/g, '')
      .trim(),
  );
const command = words.map((text) => `x${text}`);

const turn = fc.record({
  think: fc.oneof(fc.constant(''), words),
  prose: fc.oneof(fc.constant(''), words),
  commands: fc.array(command, { maxLength: 3 }),
  cut: fc.option(fc.nat({ max: 40 }), { freq: 6 }),
  results: fc.array(anything, { minLength: 3, maxLength: 3 }),
});
export const talks = fc.record({
  tools: fc.boolean(),
  turns: fc.array(turn, { minLength: 1, maxLength: 5 }),
});

type Last = { spoken: Spoken; sample: Sample; results: readonly string[] };

/** Runs the conversation; `reference` renders the whole chat. */
export async function play(
  talk: Talk,
  family: Family,
  server: SamplingServer,
  tokenizer: string | null,
  decode: (ids: Iterable<number>) => string,
  reference: Render,
): Promise<void> {
  const config = PolicyConfig.parse({ urls: [], model: 'm', token_mode: 'token-in', tokenizer });
  const speaker = await openTurnClient(config, { rolloutId: 'run.chat.0', limits: NO_LIMITS });
  const withTools = talk.tools || family.onlyTools === true;
  const tools = withTools ? TOOLS : [];
  const ledger = openLedger();
  const messages: Message[] = [
    { role: 'system', content: 'You work in a shell.' },
    { role: 'user', content: 'Mend it.' },
  ];
  const stored: ReturnType<typeof recordTokens>[] = [];
  server.log.length = 0;
  let last: Last | null = null;
  for (const [index, { cut, results, ...wanted }] of talk.turns.entries()) {
    const spoken = { ...wanted, commands: withTools ? wanted.commands.slice(0, family.calls) : [] };
    const whole = family.thought(spoken.think) + family.speech(spoken);
    const end = spoken.commands.length > 0 ? family.endOfCalls : family.end;
    const text = cut === null ? whole : cutOff(whole, cut);
    const sample: Sample = { text, end: cut === null || text === '' ? end.model : null };
    server.answerWith(sample);
    const reply = await speaker.ask(messages, tools, server.post);
    stored.push(recordTokens(ledger, reply, index + 1, true));
    if (last) {
      const suffix = decode(stored.at(-1)?.prompt_suffix ?? []);
      requireEnd(family, suffix, last, await reference({ messages, tools, open: true }));
    }
    const calls = reply.message.tool_calls ?? [];
    if (text === whole) {
      assert.deepEqual(readBack(reply.message), spoken.commands);
      const thought = family.thought('x') === '' ? '' : spoken.think;
      assert.equal(reply.message.reasoning_content ?? '', thought);
    }
    messages.push(reply.message);
    const answered = results.slice(0, Math.max(1, calls.length));
    for (const [i, content] of answered.entries()) {
      const id = calls[i]?.id;
      messages.push(
        id === undefined ? { role: 'user', content } : { role: 'tool', tool_call_id: id, content },
      );
    }
    const repeated = { ...spoken, prose: text === '' ? '' : spoken.prose, commands: readBack(reply.message) };
    last = { spoken: repeated, sample, results: answered };
  }
  const prompts = [...cumulative(stored)].map(({ prompt }) => Array.from(prompt));
  assert.deepEqual(prompts, server.log);
}

const readBack = ({ tool_calls: calls = [] }: Message): string[] =>
  calls.map(({ function: { arguments: text } }) => JSON.parse(text).command);

/** Returns the first characters of a text; never splits a character. */
const cutOff = (text: string, characters: number): string => Array.from(text).slice(0, characters).join('');

/**
 * Asserts that the appended text is the end of the template's rendering of the whole chat and contains each result. The last answer must
 * precede the appended text, with its end if the model sampled the end that the template writes.
 */
function requireEnd(family: Family, suffix: string, { spoken, sample, results }: Last, whole: string): void {
  const called = spoken.commands.length > 0;
  for (const result of results) {
    const shown = called ? (family.result ?? String)(result) : result;
    assert(suffix.includes(shown.trim()), `${JSON.stringify(shown)} is not in ${JSON.stringify(suffix)}`);
  }
  assert(whole.endsWith(suffix), `${JSON.stringify(whole)} does not end with ${JSON.stringify(suffix)}`);
  // The rendering lacks the part of the answer that a limit cut off, so the answer is not compared.
  if (sample.end === null) return;
  const before = whole.slice(0, whole.length - suffix.length);
  const { template } = called ? family.endOfCalls : family.end;
  const end = sample.end === template ? template : '';
  const words = called
    ? family
        .speech({ ...spoken, think: '', prose: '' })
        .trimEnd()
        .slice(-8)
    : spoken.prose.trim();
  const speech = before.slice(0, before.length - end.length).trimEnd();
  assert(before.endsWith(end) && speech.endsWith(words), `${JSON.stringify(before)} lacks ${words}${end}`);
}
