/** A session is a rollout whose commands come from a driver, such as the agent loop of a trainer. */
import { z } from 'zod';
import { CommandNote, ExitStatus } from './trajectory.ts';

/** Most bytes of one file, in or out, and of a patch that is read. */
export const SESSION_FILE_BYTES = 8 * 1024 ** 2;
/** Most bytes of the raw output of one command. */
export const SESSION_OUTPUT_BYTES = 4 * 1024 ** 2;

/** A path without `..`: paths are resolved inside the sandbox only, but a driver that builds one from a name of the model has made a mistake. */
export const SandboxPath = z
  .string()
  .max(4096)
  .refine((path) => /^\/[^\0]*$/.test(path) && !path.split('/').includes('..'), {
    error: 'expected an absolute path without ..',
  });

const Environment = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
  z.string().refine((value) => !value.includes('\0'), { error: 'expected text without NUL' }),
);

export const SessionInput = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('command'),
    command: z.string(),
    /** Time limit in seconds; null: the limit of the run, which is also the maximum. */
    timeout: z.number().positive().nullable(),
    /** Folder of the command, relative to the work folder; absent: the work folder. */
    cwd: z.string().optional(),
    /** Variables of this command only. */
    env: Environment.optional(),
    /** Maximum bytes of raw output in the answer; such a command never submits. Absent: the answer has only the observation. */
    raw: z.number().int().positive().max(SESSION_OUTPUT_BYTES).optional(),
  }),
  /** The content is stored separately, until the worker has answered. */
  z.object({
    kind: z.literal('write'),
    path: SandboxPath,
    mode: z.number().int().min(0).max(0o7777),
    bytes: z.number().int().nonnegative(),
    sha256: z.string(),
  }),
  z.object({ kind: z.literal('read'), path: SandboxPath, max_bytes: z.number().int().positive() }),
  /** Reads the difference to the tree at the start: the patch that `submit` would submit. */
  z.object({ kind: z.literal('diff') }),
  z.object({ kind: z.literal('submit') }),
]);
export type SessionInput = z.infer<typeof SessionInput>;

/** Level (needs.ts) of workers that know files, patches, raw output and the clock. */
export const SESSION_INPUTS_LEVEL = 2;
/** `all`: the run of the session needs {@link SESSION_INPUTS_LEVEL}. */
export const SessionInputs = z.enum(['commands', 'all']);
/** Time that the time limit counts. `commands`: only the time in which the sandbox works. */
export const SessionClock = z.enum(['wall', 'commands']);

/** Reason for which a file was not read or written, or a patch was not made. */
export const InputError = z.object({
  code: z.enum(['not_a_file', 'too_large', 'failed']),
  message: z.string(),
});
export type InputError = z.infer<typeof InputError>;

/** Content of an answer in addition to the observation. The bytes are stored separately, until the next answer. */
export const AnswerContent = z.object({
  /** Size of the whole content, whose middle may be omitted. */
  bytes: z.number().int().nonnegative(),
  /** Number of bytes before the omitted part; null: nothing is omitted. */
  head_bytes: z.number().int().nonnegative().nullable(),
});
export type AnswerContent = z.infer<typeof AnswerContent>;

/** The observation after a command, in the form that an agent of the farm gets. */
export const SessionAnswer = z.object({
  seq: z.number().int().positive(),
  observation: z.string(),
  exit_code: z.number().int().nullable(),
  seconds: z.number(),
  note: CommandNote.nullable(),
  /** Raw output, file or patch; absent if the input requested none, or if `error` has the reason. */
  content: AnswerContent.optional(),
  error: InputError.optional(),
});
export type SessionAnswer = z.infer<typeof SessionAnswer>;

/** Reason for which a session accepts no more commands. */
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
  inputs: SessionInputs,
  clock: SessionClock,
  /** Whether the clock of the time limit is stopped. */
  paused: z.boolean(),
});
export type SessionState = z.infer<typeof SessionState>;
