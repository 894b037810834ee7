/** Clients of mode `token-in` that continue after answers of other clients, against an endpoint in which each character is a token. */
import { type Message, PolicyConfig, turnSeed } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { Continued } from './endpoint/continued.ts';
import type { Post } from './endpoint/post.ts';
import { openTurnClients } from './openturnclient.ts';
import type { TurnReply } from './turnclient.ts';
import { NO_LIMITS } from './turnsampling.ts';

const END = '\u0001';
const ids = (text: string) => Array.from(text, (character) => character.charCodeAt(0));
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const write = ({ role, content }: Message): string => `<${role}>${content}${END}`;

/** `writeAll`: the chat template. Answers with `a1`, `a2`, … and records the prompts. */
function endpoint(writeAll = (messages: Message[]) => messages.map(write).join('')) {
  const sent: { prompt: string; max_tokens: number | null; seed?: number }[] = [];
  let renderings = 0;
  const post: Post = async (route, pieces) => {
    const body = JSON.parse(pieces.map(String).join(''));
    if (route === 'completions') {
      sent.push({ ...body, prompt: String.fromCharCode(...body.prompt) });
      const text = `a${sent.length}`;
      const token_ids = ids(text + END);
      const logprobs = { token_logprobs: token_ids.map(() => -0.5) };
      return json({ choices: [{ text, finish_reason: 'stop', token_ids, logprobs }] });
    }
    if (route === 'detokenize') return json({ prompt: String.fromCharCode(...body.tokens) });
    renderings++;
    return json({ tokens: ids(writeAll(body.messages) + (body.add_generation_prompt ? '<assistant>' : '')) });
  };
  return { post, sent, prompts: () => sent.map(({ prompt }) => prompt), renderings: () => renderings };
}

const CONFIG = { urls: [], model: 'm', token_mode: 'token-in', stream: 'off' };
const open = (sampling: object = {}) =>
  openTurnClients(PolicyConfig.parse({ ...CONFIG, sampling }), { rolloutId: 'run.one.0', limits: NO_LIMITS });
const user = (content: string): Message => ({ role: 'user', content });
const pointOf = ({ after, ...reply }: TurnReply): Continued => ({ ...reply, point: after });

test('two lines continue one answer with its exact tokens', async () => {
  const { post, prompts } = endpoint();
  const clients = await open();
  const first = clients.open();
  const start = [user('q')];
  const reply = await first.ask(start, [], post);
  const shared = [...start, reply.message];
  const fork = clients.open(pointOf(reply));
  await fork.ask([...shared, user('x')], [], post);
  await first.ask([...shared, user('y')], [], post);
  const common = `<user>q${END}<assistant>a1${END}`;
  expect(prompts()).toEqual([
    `<user>q${END}<assistant>`,
    `${common}<user>x${END}<assistant>`,
    `${common}<user>y${END}<assistant>`,
  ]);
});

test('an agent that sends its answers in another form changes no token', async () => {
  const { post, prompts } = endpoint();
  const clients = await open();
  const reply = await clients.open().ask([user('q')], [], post);
  const rewritten: Message = { role: 'assistant', content: 'something else' };
  await clients.open(pointOf(reply)).ask([user('q'), rewritten, user('x')], [], post);
  expect(prompts()[1]).toContain(`<assistant>a1${END}`);
});

test('the seed follows from the number of the answer, and the smaller limit of tokens is sent', async () => {
  const { post, sent } = endpoint();
  const clients = await open({ seed: 3, max_tokens: 50 });
  await clients.open().ask([user('q')], [], post, { answer: 7, maxTokens: 20 });
  await clients.open().ask([user('q')], [], post, { answer: 8, maxTokens: 80 });
  expect(sent.map(({ seed, max_tokens }) => [seed, max_tokens])).toEqual([
    [turnSeed(3, 'run.one.0', 7), 20],
    [turnSeed(3, 'run.one.0', 8), 50],
  ]);
});

const REMINDER = '<system-reminder>\nnew\n</system-reminder>';
test.each<[string, (messages: Message[]) => string, string]>([
  ['writes', (messages) => messages.map(write).join(''), `<system>new${END}<user>x${END}`],
  [
    'leaves out',
    (messages) =>
      messages
        .filter(({ role }, at) => role !== 'system' || at === 0)
        .map(write)
        .join(''),
    `<user>${REMINDER}\n\nx${END}`,
  ],
  [
    'writes at the start',
    (messages) =>
      messages
        .toSorted((a, b) => +(b.role === 'system') - +(a.role === 'system'))
        .map(write)
        .join(''),
    `<user>${REMINDER}\n\nx${END}`,
  ],
])('a system message between turns, which the template %s', async (_how, writeAll, added) => {
  const { post, prompts, renderings } = endpoint(writeAll);
  const clients = await open();
  const client = clients.open();
  const messages: Message[] = [{ role: 'system', content: 's' }, user('q')];
  messages.push((await client.ask(messages, [], post)).message);
  messages.push({ role: 'system', content: 'new' }, user('x'));
  await client.ask(messages, [], post);
  const begin = `<system>s${END}<user>q${END}<assistant>a1${END}`;
  expect(prompts()[1]).toBe(`${begin}${added}<assistant>`);
  const before = renderings();
  const whole = await clients.countTokens?.([...messages], [], post);
  expect([whole, renderings()]).toEqual([begin.length + added.length + '<assistant>'.length, before + 1]);
});
