/** A session is a rollout whose commands come from a driver, such as the agent loop of a trainer. */
import { z } from 'zod';
import { CommandNote, ExitStatus } from './trajectory.ts';

export const SessionInput = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('command'),
    command: z.string(),
    /** Time limit in seconds; null: the limit of the run, which is also the maximum. */
    timeout: z.number().positive().nullable(),
  }),
  z.object({ kind: z.literal('submit') }),
]);
export type SessionInput = z.infer<typeof SessionInput>;

/** The observation after a command, in the form that an agent of the farm gets. */
export const SessionAnswer = z.object({
  seq: z.number().int().positive(),
  observation: z.string(),
  exit_code: z.number().int().nullable(),
  seconds: z.number(),
  note: CommandNote.nullable(),
});
export type SessionAnswer = z.infer<typeof SessionAnswer>;

/** Why a session accepts no more commands. */
export const SessionEnd = z.enum([...ExitStatus.options, 'sandbox_killed', 'lease', 'cancelled', 'failed']);
export type SessionEnd = z.infer<typeof SessionEnd>;

export const SessionState = z.object({
  session_id: z.string(),
  rollout_id: z.string(),
  /** `waiting`: no sandbox yet. `open`: accepts commands. `grading`: accepts no more commands. `ended`: has a result. */
  state: z.enum(['waiting', 'open', 'grading', 'ended']),
  end: SessionEnd.nullable(),
  /** Numbers of the last posted command (or submission) and of the last answered command; 0: none. */
  said: z.number().int(),
  answered: z.number().int(),
  lease_seconds: z.number(),
});
export type SessionState = z.infer<typeof SessionState>;
