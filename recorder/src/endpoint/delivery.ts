/** Sends an outcome to the agent, whole or as a stream. A stream has signs of life until the answer is complete, and never half an answer. */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { AgentAnswer, AgentRequest, DialectForm, Refused } from '../dialects/dialect.ts';
import { REFUSAL_STATUS } from '../dialects/dialect.ts';

/** The outcome of a request: an answer, or the reason of a refusal. */
export type Outcome = { answer: AgentAnswer } | { refused: Refused; message: string };

export type Silence = { head: number; alive: number };

/**
 * Sends the outcome. Resolves with true if the answer was handed to the connection to its end. `id`: of the answer.
 */
export async function deliver(
  response: ServerResponse,
  { form, request, id, silence }: { form: DialectForm; request: AgentRequest; id: string; silence: Silence },
  outcome: Promise<Outcome>,
): Promise<boolean> {
  if (!request.stream) {
    const end = await whenComplete(outcome);
    return 'answer' in end
      ? await sendJson(response, 200, form.whole(request, end.answer))
      : await sendRefusal(response, form, end);
  }
  let begun = false;
  const begin = (): void => {
    begun = true;
    response.writeHead(200, STREAM_HEAD);
    response.write(form.begin(request, id));
  };
  const timer = setTimeout(() => {
    if (isOpen(response)) begin();
  }, silence.head);
  const alive = setInterval(() => {
    if (begun && isOpen(response)) response.write(form.alive(request, id));
  }, silence.alive);
  const end = await whenComplete(outcome);
  clearTimeout(timer);
  clearInterval(alive);
  if (!isOpen(response)) return false;
  if (!('answer' in end)) {
    if (!begun) return await sendRefusal(response, form, end);
    return await ended(response, form.refusedStream(request, id, end.refused, end.message));
  }
  if (!begun) begin();
  return await ended(response, form.events(request, end.answer));
}

/** Waits for the outcome, and until the server has seen that a client has left before: what is written to it would count as delivered. */
async function whenComplete(outcome: Promise<Outcome>): Promise<Outcome> {
  const end = await outcome;
  await setImmediate();
  return end;
}

const STREAM_HEAD = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

const isOpen = (response: ServerResponse): boolean => !response.destroyed && !response.closed;

export const sendRefusal = (
  response: ServerResponse,
  form: DialectForm,
  { refused, message }: { refused: Refused; message: string },
): Promise<boolean> => sendJson(response, REFUSAL_STATUS[refused], form.refusal(refused, message));

/** Resolves with true if the bytes were handed to the connection to their end. */
export async function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  if (!isOpen(response)) return false;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  return await ended(response, JSON.stringify(value));
}

function ended(response: ServerResponse, text: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  response.once('close', () => resolve(response.writableFinished));
  response.end(text);
  return promise;
}
