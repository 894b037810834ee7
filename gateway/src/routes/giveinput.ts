/** Gives one input of a driver to its session, and waits for the answer while the driver is connected. */
import { isUtf8 } from 'node:buffer';
import {
  type Farm,
  InputError,
  type PostedCommand,
  SessionAnswer,
  SessionEnd,
  type SessionInput,
  type SessionState,
} from '@swefarm/shared';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { closedSignal } from '../calls/callconnection.ts';
import { awaitVerdict, SessionVerdict } from '../sessions/result.ts';

export const SessionParams = z.object({ id: z.string().regex(/^[a-z][0-9a-z]{3,40}$/) });

export const WaitSeconds = z.number().min(0).max(600).default(60).meta({
  description:
    'how long the call waits before it answers that there is nothing yet; the caller then repeats it',
});

export const Encoding = z.enum(['utf-8', 'base64']);

const Content = z.object({
  data: z.string(),
  encoding: Encoding.meta({ description: 'base64: the bytes are not UTF-8' }),
  bytes: z.number().int().meta({ description: 'size of the whole' }),
  head_bytes: z
    .number()
    .int()
    .nullable()
    .meta({ description: 'bytes of data before the part that is left out; null: data is the whole' }),
});

export const InputReply = z.union([
  SessionAnswer.omit({ content: true, error: true }).extend({
    state: z.literal('answered'),
    content: Content.optional().meta({ description: 'raw output, file or patch, if one was asked for' }),
    error: InputError.optional().meta({ description: 'why a file or a patch could not be had' }),
  }),
  z.object({ state: z.literal('waiting'), seq: z.number().int() }),
  z.object({ state: z.literal('ended'), end: SessionEnd.nullable(), result: SessionVerdict.nullable() }),
]);
export type InputReply = z.infer<typeof InputReply>;

type Given = { seq: number; wait_s: number };

/**
 * Posts the input and waits for its answer.
 *
 * @param content the bytes of an input `write`
 * @throws Refusal 404, 409, 410
 */
export async function giveInput(
  deps: GatewayDeps,
  id: string,
  { seq, wait_s }: Given,
  input: SessionInput,
  reply: FastifyReply,
  content?: Buffer,
): Promise<InputReply> {
  const { farm } = deps;
  const isPlain = input.kind === 'command' && !('raw' in input || 'cwd' in input || 'env' in input);
  if (!isPlain) await requireAllInputs(farm, id);
  const posted = await farm.sessions.post(id, seq, input, content);
  if (posted.status === 'ended' || posted.status === 'submitted') return await describeEnd(farm, id);
  requirePosted(posted, id, seq);
  const answer = await whileConnected(deps, id, reply, (signal) =>
    farm.sessions.answer(id, seq, wait_s * 1000, signal),
  );
  if (answer === null || answer.status === 'waiting') return { state: 'waiting', seq };
  if (answer.status === 'forgotten') throw forgotten(seq);
  if (answer.status !== 'answer') return await describeEnd(farm, id);
  const { content: described, ...rest } = answer.answer;
  if (!described || !answer.content) return { state: 'answered', ...rest };
  return { state: 'answered', ...rest, content: { ...described, ...textOf(answer.content) } };
}

function textOf(bytes: Buffer): { data: string; encoding: z.infer<typeof Encoding> } {
  return isUtf8(bytes)
    ? { data: bytes.toString('utf8'), encoding: 'utf-8' }
    : { data: bytes.toString('base64'), encoding: 'base64' };
}

/** @throws Refusal 409 `inputs_differ`: the worker of the session may be of a version that knows commands only */
export async function requireAllInputs(farm: Farm, id: string): Promise<void> {
  const { inputs } = await requireSession(farm, id);
  if (inputs === 'all') return;
  const message = 'the session takes commands only: open it with "inputs": "all"';
  throw new Refusal(409, 'inputs_differ', message, { field: 'inputs' });
}

export async function requireSession(farm: Farm, id: string): Promise<SessionState> {
  const state = await farm.sessions.state(id);
  if (!state) throw unknownSession(id);
  return state;
}

/** Returns the answer for a session that accepts no more commands. */
async function describeEnd(farm: Farm, id: string) {
  const { rollout_id, end } = await requireSession(farm, id);
  const noSignal = new AbortController().signal;
  return { state: 'ended' as const, end, result: await awaitVerdict(farm, rollout_id, 0, noSignal) };
}

function requirePosted(posted: PostedCommand, id: string, seq: number): void {
  const refuse = (status: number, code: string, text: string): Refusal =>
    new Refusal(status, code, `seq: ${text}`, { field: 'seq' });
  if (posted.status === 'gone') throw unknownSession(id);
  if (posted.status === 'differs') throw refuse(409, 'seq_differs', `another command has the number ${seq}`);
  if (posted.status === 'forgotten') throw forgotten(seq);
  if (posted.status !== 'gap') return;
  const { posted: count } = posted;
  throw refuse(409, 'seq_gap', `expected ${count + 1}: the session has ${count} commands`);
}

const forgotten = (seq: number): Refusal =>
  new Refusal(410, 'seq_forgotten', `seq: the answer to command ${seq} has expired`, { field: 'seq' });

export const unknownSession = (id: string): Refusal =>
  new Refusal(404, 'session_unknown', `unknown session ${id}: it was never opened, or ended long ago`, {
    field: 'id',
  });

const RENEW_MS = 1_000;

/** Runs `wait` and renews the lease meanwhile. Returns null if the caller disconnects or the gateway stops before `wait` ends. */
export async function whileConnected<T>(
  { farm, signal: stopping }: GatewayDeps,
  id: string,
  reply: FastifyReply,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const signal = AbortSignal.any([stopping, closedSignal(reply)]);
  const timer = setInterval(() => void farm.sessions.renew([id]).catch(() => undefined), RENEW_MS);
  try {
    return await wait(signal);
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  } finally {
    clearInterval(timer);
  }
}
