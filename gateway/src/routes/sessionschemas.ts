/** Requests and answers of `/v1/sessions`. */
import { SessionAnswer, SessionEnd, SessionState } from '@swefarm/shared';
import { z } from 'zod';
import { SessionVerdict } from '../sessions/result.ts';

export const SessionParams = z.object({ id: z.string().regex(/^[a-z][0-9a-z]{3,40}$/) });

const WaitSeconds = z.number().min(0).max(600).default(60).meta({
  description:
    'how long the call waits before it answers that there is nothing yet; the caller then repeats it',
});

export const CommandRequest = z.strictObject({
  seq: z.number().int().positive().meta({ description: 'counted by the caller from 1, without gaps' }),
  command: z.string().max(1_000_000),
  timeout_s: z.number().positive().optional(),
  wait_s: WaitSeconds,
});

export const SubmitRequest = z.strictObject({ wait_s: WaitSeconds }).prefault({});

export const HeartbeatRequest = z.strictObject({ session_ids: z.array(z.string()).max(10_000) });

export const OpenedSession = SessionState.extend({
  limits: z.object({ step_timeout: z.number(), step_limit: z.number(), time_limit: z.number() }),
});

export const SessionWithVerdict = SessionState.extend({ result: SessionVerdict.nullable() });

export const CommandReply = z.union([
  SessionAnswer.extend({ state: z.literal('answered') }),
  z.object({ state: z.literal('waiting'), seq: z.number().int() }),
  z.object({ state: z.literal('ended'), end: SessionEnd.nullable(), result: SessionVerdict.nullable() }),
]);

export const SubmitReply = z.union([
  z.object({ state: z.literal('ended'), result: SessionVerdict }),
  z.object({ state: z.literal('grading') }),
]);

export const AliveSessions = z.object({ alive: z.array(z.string()) });
export const SessionAlive = z.object({ alive: z.boolean() });
