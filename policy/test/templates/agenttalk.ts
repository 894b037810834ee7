/**
 * One generated conversation of an agent that comes as a program, in mode token-in: system messages between turns, several tool results,
 * user messages after results, answers of text alone, calls that cannot be read, answers given back in another form, and lines that
 * continue one answer. Each prompt is compared with the server's log and with the template's rendering of the whole chat.
 */
import assert from 'node:assert/strict';
import { type Message, PolicyConfig } from '@swefarm/shared';
import fc from 'fast-check';
import type { Continued } from '../../src/endpoint/continued.ts';
import { isRefusal } from '../../src/endpoint/errors.ts';
import { openTurnClients } from '../../src/openturnclient.ts';
import type { TurnClient, TurnReply } from '../../src/turnclient.ts';
import { NO_LIMITS } from '../../src/turnsampling.ts';
import type { Family } from './families.ts';
import type { Render, SamplingServer } from './server.ts';
import { TOOLS } from './talk.ts';

/** The messages that follow an answer, beside the results of its calls. */
const TAILS = [[], ['user'], ['system'], ['system', 'user'], ['user', 'user'], ['user', 'system']] as const;

const Step = fc.record({
  think: fc.constantFrom('', 'I look first.'),
  prose: fc.constantFrom('', 'Here is a text.'),
  calls: fc.nat({ max: 3 }),
  /** Whether the last characters of the calls are missing. */
  isBroken: fc.constantFrom(false, false, false, true),
  tail: fc.constantFrom(...TAILS),
  /** Whether the answer comes back in another form. */
  isRewritten: fc.boolean(),
  /** Whether another line continues the same answer first. */
  forks: fc.boolean(),
});
type Step = typeof Step extends fc.Arbitrary<infer S> ? S : never;
export const agentTalks = fc.array(Step, { minLength: 1, maxLength: 6 });

/**
 * `beyond`: prompts that continue although the template refuses the whole chat, as Mistral's does for a user message after a result.
 * `refused`: conversations that ended because the template refuses what the agent sent.
 */
export type TalkCounts = { continued: number; forked: number; beyond: number; refused: number };
export const openTalkCounts = (): TalkCounts => ({ continued: 0, forked: 0, beyond: 0, refused: 0 });

export type Stage = {
  family: Family;
  server: SamplingServer;
  /** Folder of the tokenizer; null: the server renders. */
  folder: string | null;
  decode: (ids: Iterable<number>) => string;
  /** Renders the whole chat. */
  reference: Render;
  counts: TalkCounts;
};

type Asked = { client: TurnClient; messages: Message[]; reply: TurnReply };

/** Plays the conversation. Throws AssertionError for a prompt that is not what the template writes after all earlier tokens. */
export async function playAgent(steps: readonly Step[], stage: Stage): Promise<void> {
  const { server, folder, counts } = stage;
  const config = PolicyConfig.parse({ urls: [], model: 'm', token_mode: 'token-in', tokenizer: folder });
  const clients = await openTurnClients(config, { rolloutId: 'run.agent.0', limits: NO_LIMITS });
  const messages: Message[] = [
    { role: 'system', content: 'You work in a shell.' },
    { role: 'user', content: 'Mend it.' },
  ];
  const client = clients.open();
  const [first] = steps;
  if (!first) return;
  sample(stage, first);
  let last: Asked = { client, messages, reply: await client.ask(messages, TOOLS, server.post) };
  for (const [index, step] of steps.entries()) {
    const next = steps[index + 1] ?? first;
    const added = followUp(last.reply.message, step, index);
    if (step.forks) {
      const other = [
        ...added.slice(0, resultsIn(added)),
        { role: 'user' as const, content: `fork ${index}.` },
      ];
      const fork = clients.open(pointOf(last.reply));
      if ((await goOn({ ...last, client: fork }, other, next, step, stage)) !== null) counts.forked++;
    }
    const asked = await goOn(last, added, next, step, stage);
    if (asked === null) {
      counts.refused++;
      return;
    }
    counts.continued++;
    last = asked;
  }
}

/** Asks for the next answer; null if the template cannot write the messages. */
async function goOn(
  { client, messages, reply }: Asked,
  added: readonly Message[],
  next: Step,
  { isRewritten }: Step,
  stage: Stage,
): Promise<Asked | null> {
  const echo: Message = isRewritten ? { role: 'assistant', content: 'Somebody wrote this.' } : reply.message;
  const given = [...messages, echo, ...added];
  const whole = [...messages, reply.message, ...added];
  sample(stage, next);
  const before = [...(reply.prompt_token_ids ?? []), ...(reply.generation_token_ids ?? [])];
  const [asSent, asFolded] = await Promise.all(
    [whole, folded(whole)].map((chat) => rendered(chat, stage.reference)),
  );
  try {
    const answer = await client.ask(given, TOOLS, stage.server.post);
    const prompt = stage.server.log.at(-1) ?? [];
    assert.deepEqual(prompt.slice(0, before.length), before, 'the prompt does not begin with all tokens');
    const suffix = stage.decode(prompt.slice(before.length));
    requireTexts(suffix, added, stage.family);
    const expected = suffix.includes('<system-reminder>') ? asFolded : asSent;
    if (expected === null) stage.counts.beyond++;
    else {
      const why = `${JSON.stringify(expected)} does not end with ${JSON.stringify(suffix)}`;
      assert(expected?.endsWith(suffix), why);
    }
    return { client, messages: whole, reply: answer };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    assert(asSent === null || asFolded === null, `refused, although the template writes it: ${error}`);
    return null;
  }
}

const pointOf = ({ after, ...reply }: TurnReply): Continued => ({ ...reply, point: after });

function sample({ family, server }: Stage, { think, prose, calls, isBroken }: Step): void {
  const commands = ['ls', 'cat a.py', 'git diff'].slice(0, Math.min(calls, family.calls));
  const whole = family.thought(think) + family.speech({ think, prose, commands });
  const cut = isBroken && commands.length > 0 ? 9 : 0;
  const text = Array.from(whole)
    .slice(0, Array.from(whole).length - cut)
    .join('');
  server.answerWith({ text, end: (commands.length > 0 ? family.endOfCalls : family.end).model });
}

/** Returns what the agent sends after an answer: results of its calls, and the messages of the step. */
function followUp({ tool_calls: calls = [] }: Message, { tail }: Step, index: number): Message[] {
  const results = calls.map(
    ({ id }, at): Message => ({
      ...{ role: 'tool', tool_call_id: id },
      content: `result ${index}.${at} é\n</tool_call>`,
    }),
  );
  const roles = calls.length === 0 && tail.length === 0 ? (['user'] as const) : tail;
  return [...results, ...roles.map((role, at) => ({ role, content: `${role} ${index}.${at} note.` }))];
}

const resultsIn = (messages: readonly Message[]): number =>
  messages.filter(({ role }) => role === 'tool').length;

/** Each new text is in the suffix once, in order. */
function requireTexts(suffix: string, added: readonly Message[], { result = String }: Family): void {
  let at = 0;
  for (const { role, content } of added) {
    const text = role === 'tool' ? result(content ?? '') : (content ?? '');
    const found = suffix.indexOf(text, at);
    assert(found !== -1, `${JSON.stringify(text)} is not in order in ${JSON.stringify(suffix)}`);
    assert.equal(suffix.indexOf(text, found + 1), -1, `${JSON.stringify(text)} is twice in ${suffix}`);
    at = found + text.length;
  }
}

/** Returns the chat as agents' own servers fold it: system messages after the first become a part of a user message. */
function folded(messages: readonly Message[]): Message[] {
  const chat: Message[] = [];
  let reminders: string[] = [];
  for (const [at, message] of messages.entries()) {
    const isFirst = at === 0;
    if (message.role === 'system' && !isFirst)
      reminders.push(`<system-reminder>\n${message.content}\n</system-reminder>`);
    else if (message.role === 'user' && reminders.length > 0) {
      chat.push({ ...message, content: [...reminders, message.content].join('\n\n') });
      reminders = [];
    } else {
      if (message.role === 'assistant' && reminders.length > 0) {
        chat.push({ role: 'user', content: reminders.join('\n\n') });
        reminders = [];
      }
      chat.push(message);
    }
  }
  if (reminders.length > 0) chat.push({ role: 'user', content: reminders.join('\n\n') });
  return chat;
}

async function rendered(messages: readonly Message[], reference: Render): Promise<string | null> {
  const readable = messages.map(({ tool_calls: calls, ...message }) => ({
    ...message,
    ...(calls ? { tool_calls: calls.map(withReadableArguments) } : {}),
  }));
  try {
    return await reference({ messages: readable, tools: TOOLS, open: true });
  } catch {
    return null;
  }
}

type Call = NonNullable<Message['tool_calls']>[number];
function withReadableArguments(call: Call): Call {
  try {
    JSON.parse(call.function.arguments);
    return call;
  } catch {
    return { ...call, function: { ...call.function, arguments: '{}' } };
  }
}
