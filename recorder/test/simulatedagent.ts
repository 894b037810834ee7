/**
 * An agent for property tests: it has several conversations, and does to them what real agents do. It repeats requests, drops answers,
 * rewrites and condenses histories, goes back to earlier ones, and gives answers back in another form.
 */
import type { Message } from '@swefarm/shared';
import fc from 'fast-check';
import type { AgentRequest } from '../src/dialects/dialect.ts';
import { Recording } from '../src/endpoint/recording.ts';
import type { RecorderOptions } from '../src/index.ts';
import { assistant, requestOf, result, system, user } from './agentrequest.ts';
import { tool } from './options.ts';
import { callMessage, type Scripted } from './scriptedpolicy.ts';

/** How an answer comes back in the next request of its conversation. */
const ECHOES = [
  'same',
  'spaces',
  'no reasoning',
  'repaired',
  'rewritten',
  'dropped',
  'foreign text',
] as const;

export const Step = fc.record({
  does: fc.constantFrom('open', 'go on', 'go on', 'go on', 'repeat', 'condense', 'fork', 'subagent'),
  conversation: fc.nat(7),
  echo: fc.constantFrom<(typeof ECHOES)[number]>('same', 'same', 'same', ...ECHOES),
  isDelivered: fc.boolean(),
  isReversed: fc.boolean(),
  callsAllowed: fc.boolean(),
  /** Whether the next step begins before this one has its answer. */
  isBeside: fc.boolean(),
});
export type Step = typeof Step extends fc.Arbitrary<infer S> ? S : never;

export const Answer: fc.Arbitrary<Scripted> = fc.oneof(
  fc.constantFrom('yes', 'no', 'The file has a mistake, and the mistake is in the second line.').map(texted),
  fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 1, max: 3 })).map(([id, count]) => ({
    message: { ...callMessage(id, ...Array(count).fill('ls')), reasoning_content: 'I look.' },
  })),
  fc.constant({ message: withArguments(callMessage('bad', 'ls'), '{"command":') }),
  fc.constant({ message: assistant('I am cut'), finish: 'length' }),
);

function texted(content: string): Scripted {
  return { message: assistant(content) };
}

function withArguments(message: Message, text: string): Message {
  const calls = message.tool_calls?.map((call) => ({
    ...call,
    function: { ...call.function, arguments: text },
  }));
  return { ...message, tool_calls: calls };
}

type Conversation = { messages: Message[]; answer: Message | null; tools: AgentRequest['tools'] };

/** Opens a recording without a server, for agents that ask it directly. */
export const openRecording = (options: RecorderOptions): Recording => new Recording(options);

export class SimulatedAgent {
  readonly #recording: Recording;
  readonly #conversations: Conversation[] = [];
  #inFlight: Promise<void>[] = [];

  constructor(recording: Recording) {
    this.#recording = recording;
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      this.#inFlight.push(this.#take(step));
      if (!step.isBeside) await this.#settle();
    }
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#inFlight);
    this.#inFlight = [];
  }

  async #take(step: Step): Promise<void> {
    const chosen = this.#conversations[step.conversation % Math.max(1, this.#conversations.length)];
    if (!chosen || step.does === 'open') return await this.#ask(this.#open(['bash'], 'You fix code.'), step);
    if (step.does === 'subagent') return await this.#ask(this.#open(['bash', 'grep'], 'You search.'), step);
    if (step.does === 'fork') {
      const length = 2 + (step.conversation % Math.max(1, chosen.messages.length - 1));
      const copy = {
        ...chosen,
        messages: [...chosen.messages.slice(0, length), user('Try again.')],
        answer: null,
      };
      this.#conversations.push(copy);
      return await this.#ask(copy, step);
    }
    if (step.does === 'condense') {
      const text = chosen.answer?.content ?? 'nothing';
      chosen.messages = [...chosen.messages.slice(0, 2), user(`Done so far: ${text}`)];
      chosen.answer = null;
    } else if (step.does === 'go on') goOn(chosen, step);
    await this.#ask(chosen, step);
  }

  #open(tools: string[], prompt: string): Conversation {
    const opened = { messages: [system(prompt), user('Fix it.')], answer: null, tools: tools.map(tool) };
    this.#conversations.push(opened);
    return opened;
  }

  async #ask(conversation: Conversation, { isDelivered, callsAllowed }: Step): Promise<void> {
    const { messages, tools } = conversation;
    const asking = this.#recording.ask(requestOf(messages, { tools, callsAllowed }), null);
    const outcome = await asking.outcome;
    if (!('answer' in outcome)) throw new Error(`refused: ${outcome.message}`);
    if (!isDelivered) return;
    asking.delivered();
    conversation.answer = outcome.answer.message;
  }
}

/** Adds the answer as the agent gives it back, and what follows it. */
function goOn(conversation: Conversation, { echo, isReversed }: Step): void {
  const { messages, answer } = conversation;
  conversation.answer = null;
  if (!answer || echo === 'dropped') {
    messages.push(user('Call a tool.'));
    return;
  }
  const calls = answer.tool_calls ?? [];
  const results = calls.map(({ id }) => result(id, `result of ${id}`));
  messages.push(echoed(answer, echo), ...(isReversed ? results.reverse() : results));
  if (calls.length === 0) messages.push(user('Go on.'));
}

function echoed(answer: Message, echo: Step['echo']): Message {
  const { reasoning_content: _thought, ...rest } = answer;
  switch (echo) {
    case 'spaces':
      return { ...answer, content: ` ${answer.content ?? ''}\n` };
    case 'no reasoning':
      return rest;
    case 'repaired':
      return withArguments(rest, '{"error":"malformed"}');
    case 'rewritten':
      return { ...rest, content: `${answer.content ?? ''} Got it.` };
    case 'foreign text':
      return assistant('Somebody else wrote this.');
    default:
      return answer;
  }
}
