/** A session: a rollout whose commands come from a driver outside (a trainer's own agent loop), one after the other. */
import { z } from 'zod';
import { ExitStatus } from './trajectory.ts';

/** What the driver sends: a command, or the submission of the tree as its solution. */
export const SessionInput = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('command'),
    command: z.string(),
    /** Seconds it may run; null: the run's own limit, which is also the most. */
    timeout: z.number().positive().nullable(),
  }),
  z.object({ kind: z.literal('submit') }),
]);
export type SessionInput = z.infer<typeof SessionInput>;

/** What the sandbox gave back: the observation as an agent of the farm would have seen it. */
export const SessionAnswer = z.object({
  seq: z.number().int().positive(),
  observation: z.string(),
  exit_code: z.number().int().nullable(),
  seconds: z.number(),
  note: z.enum(['timed_out', 'shell_reopened', 'killed_by_limit']).nullable(),
});
export type SessionAnswer = z.infer<typeof SessionAnswer>;

/** Why nothing more is taken: how the agent's part ended, or `lease`, `cancelled`, `failed`. */
export const SessionEnd = z.enum([...ExitStatus.options, 'sandbox_killed', 'lease', 'cancelled', 'failed']);
export type SessionEnd = z.infer<typeof SessionEnd>;

export const SessionState = z.object({
  session_id: z.string(),
  rollout_id: z.string(),
  /** `waiting`: no sandbox yet. `open`: commands are taken. `grading`: none are, the result comes. `ended`: it is there. */
  state: z.enum(['waiting', 'open', 'grading', 'ended']),
  end: SessionEnd.nullable(),
  /** Numbers of the last command that was posted and of the last one answered; 0: none. A submission counts as posted. */
  said: z.number().int(),
  answered: z.number().int(),
  lease_seconds: z.number(),
});
export type SessionState = z.infer<typeof SessionState>;
