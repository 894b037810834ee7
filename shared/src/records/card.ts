/**
 * The card of an agent that comes as a program: how the program starts in a sandbox, how it asks its model, and how its end is read. A card
 * is data of the user or of the farm, never of a dataset. docs/agents.md describes the fields.
 */
import { z } from 'zod';

/** Request formats by which an agent may call its model: OpenAI chat completions and responses, and Anthropic messages. */
export const Dialect = z.enum(['chat', 'responses', 'messages']);
export type Dialect = z.infer<typeof Dialect>;

const NAME = /^[a-z0-9][a-z0-9-]{0,40}$/;
const TEXT = 64 * 1024;
const text = z.string().max(TEXT);
const SHA256 = /^[0-9a-f]{64}$/;
const environment = z.record(z.string().regex(/^[A-Za-z_]\w*$/), text);

/** Additions to the start of the agent for one value of an option. */
const Addition = z.strictObject({
  env: environment.default({}),
  args: z.array(text).default([]),
  /** Replaces `api.overflow`. */
  overflow: z.enum(['end', 'tell']).optional(),
});

const Option = z.strictObject({
  default: z.union([z.string().max(1_000), z.number(), z.boolean()]),
  help: z.string().max(300),
  /** Name of the file in {home} that a run may give instead of a value; the placeholder is then its path. Absent: no file. */
  file: z
    .string()
    .regex(/^[\w-][\w.-]{0,79}$/)
    .optional(),
  /** Value, as text → additions. */
  when: z.record(z.string(), Addition).default({}),
});

/** A rule for the exit status of the program. The first rule that matches applies. */
const EndRule = z.strictObject({
  exit: z.union([z.literal('any'), z.number().int().min(0).max(255)]),
  /** A JSON file that the agent wrote, the dotted path of a field in the file, and the accepted values of the field. */
  field: z.strictObject({ file: text, path: text, is: z.array(text).min(1) }).optional(),
  status: z.enum(['submitted', 'turn_limit', 'context_limit', 'agent_error']),
});

/** Headers (or a field of a header's JSON) that identify the conversation of a request. */
const BranchRule = z.strictObject({
  header: z.string().regex(/^[a-z0-9-]+$/),
  field: z.string().optional(),
  /** The value that the header must have; absent: any value. */
  is: z.string().optional(),
});

export const AgentCard = z.strictObject({
  card: z.literal(1),
  name: z.string().regex(NAME, { error: 'expected lower-case letters, digits and hyphens' }),
  version: z.string().min(1).max(80),
  description: z.string().max(300),
  /** The folder of programs that is mounted into the sandbox. `lock`: sha256 of the file that fixes its contents; null: any content. */
  bundle: z.strictObject({
    name: z.string().regex(NAME),
    lock: z.string().regex(SHA256).nullable().default(null),
  }),
  needs: z.strictObject({
    /** Lowest version of glibc in the image; `none`: any C library. */
    libc: z.union([z.literal('none'), z.string().regex(/^glibc \d+\.\d+$/)]),
    /** Programs that the image must have. */
    commands: z.array(z.string().regex(/^[\w.+-]+$/)).default(['bash', 'git']),
    /** Memory and processes of the agent itself, which are added to the limits of the run. */
    memory_mib: z.number().int().nonnegative().max(65_536).default(512),
    pids: z.number().int().nonnegative().max(10_000).default(200),
  }),
  api: z.strictObject({
    dialects: z.array(Dialect).min(1),
    /** Form of an unreadable call for the agent: the answer as text, or a call with the sampled arguments. */
    malformed: z.enum(['text', 'raw']).default('text'),
    /** Effect of a full context: the rollout ends, or the agent gets an error and then condenses its history. */
    overflow: z.enum(['end', 'tell']).default('end'),
  }),
  /** Files that are written before the start: path → content. */
  files: z.record(text, text).default({}),
  env: environment.default({}),
  /** Program and arguments. A card whose agent reads the task from a file uses `{task_file}`. */
  command: z.array(text).min(1).max(200),
  /** Command that shows that the program starts, such as its `--version`; empty: none is known. */
  check: z.array(text).max(20).default([]),
  options: z.record(z.string().regex(/^[a-z][a-z0-9_]*$/), Option).default({}),
  ends: z.array(EndRule).min(1),
  branches: z
    .strictObject({ subagent: z.array(BranchRule).default([]), summary: z.array(BranchRule).default([]) })
    .prefault({}),
  /** Files that are stored with the rollout: a path, or a folder whose regular files are stored. */
  outputs: z
    .array(
      z.strictObject({
        path: text,
        as: z.string().regex(/^[\w.-]{1,80}$/),
        max_mib: z.number().positive().max(64),
      }),
    )
    .max(10)
    .default([]),
});
export type AgentCard = z.infer<typeof AgentCard>;
