/**
 * A policy for tests. Its token ids are the characters of the rendered messages; what it samples has ids that no rendering has, so a prompt
 * in which a sampled answer was rendered again differs from one that continues it.
 */
import type { Message, ToolDefinition } from '@swefarm/shared';
import type { Continued, NoRoom, PolicyLine, PolicyRequest, RecordedReply } from '../src/index.ts';
import { call } from './agentrequest.ts';

/** What the policy answers: a message, or an error that it throws. */
export type Scripted = { message: Message; finish?: string; text?: string } | { error: Error } | NoRoom;

/** What the policy was asked, and what it sampled. */
export type Sample = {
  number: number;
  prompt: Int32Array;
  generation: Int32Array;
  messages: readonly Message[];
  maxTokens: number | null;
};

export type ScriptedPolicy = ReturnType<typeof createScriptedPolicy>;

const FIRST_SAMPLED = 1_000_000;

/** @param answer returns the answer to a request; it may wait */
export function createScriptedPolicy(
  answer: (request: PolicyRequest, number: number) => Scripted | Promise<Scripted>,
) {
  const samples: Sample[] = [];
  const state = { inFlight: 0, mostInFlight: 0, requests: 0, sampledIds: 0 };

  const sample = async (prompt: Int32Array, request: PolicyRequest): Promise<RecordedReply | NoRoom> => {
    const number = ++state.requests;
    state.mostInFlight = Math.max(state.mostInFlight, ++state.inFlight);
    const made = await answer(request, number);
    state.inFlight--;
    request.signal.throwIfAborted();
    if ('error' in made) throw made.error;
    if ('context_overflow' in made) return made;
    const length = Math.max(1, JSON.stringify(made.message).length % 13);
    const generation = Int32Array.from({ length }, () => FIRST_SAMPLED + state.sampledIds++);
    samples.push({ number, prompt, generation, messages: request.messages, maxTokens: request.maxTokens });
    return {
      message: made.message,
      finish_reason: made.finish ?? 'stop',
      ...(made.text === undefined ? {} : { text: made.text }),
      usage: { prompt_tokens: prompt.length, completion_tokens: length },
      prompt_token_ids: prompt,
      generation_token_ids: generation,
      generation_log_probs: new Float32Array(length).fill(-1),
      seconds: 0.001,
      endpoint: 'http://policy',
      policy_version: { start: 'v1', end: 'v1' },
      after: { messages: request.messages.length + 1 },
    };
  };

  const openLine = (after?: Continued): PolicyLine => {
    let ids = after ? [...(after.prompt_token_ids ?? []), ...(after.generation_token_ids ?? [])] : [];
    let known = after ? (after.point as { messages: number }).messages : 0;
    return {
      async complete(request) {
        const added = request.messages.slice(known);
        const head = known === 0 ? renderTools(request.tools) : [];
        const prompt = Int32Array.from([...ids, ...head, ...added.flatMap(renderMessage)]);
        const reply = await sample(prompt, request);
        if ('context_overflow' in reply) return reply;
        ids = [...prompt, ...(reply.generation_token_ids ?? [])];
        known = request.messages.length + 1;
        return reply;
      },
    };
  };
  return { openLine, samples, state };
}

const codes = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));
const renderTools = (tools: readonly ToolDefinition[]): number[] =>
  codes(tools.map((tool) => tool.function.name).join());
const renderMessage = (message: Message): number[] => codes(`<${JSON.stringify(message)}>`);

export const says = (content: string): Scripted => ({ message: { role: 'assistant', content } });

/** An answer with one call for each command, of the tool `bash`. */
export const runs = (id: string, ...commands: string[]): Scripted => ({
  message: callMessage(id, ...commands),
});

export const callMessage = (id: string, ...commands: string[]): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: commands.map((command, index) => call(`${id}-${index}`, 'bash', JSON.stringify({ command }))),
});
