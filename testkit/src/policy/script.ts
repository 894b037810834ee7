/** Reads the script of the policy server, which has the answer for each turn. Checks the whole script; errors name the invalid field. */
import { readFileSync } from 'node:fs';
import { errorMessage, UsageError } from '@swefarm/shared';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { Delay } from './delay.ts';
import { Fault, FaultRules } from './faults.ts';

export const Turn = z
  .strictObject({
    /** The literal answer, for answers with no command or with two. */
    text: z.string().optional(),
    /** One command, as a fenced block or as a call of `bash`, depending on the request. */
    command: z.string().optional(),
    /** Several commands in one answer. */
    commands: z.array(z.string()).min(2).optional(),
    /** Plain words before the command. */
    thought: z.string().optional(),
    /** Thinking, between <think> and </think>, before all else. */
    think: z.string().optional(),
    /** Submits as the agent of the request expects it. A text is written after the sentinel, or is the last word. */
    submit: z.union([z.literal(true), z.string()]).optional(),
    /** Literal calls; arguments given as text are sent unchecked. */
    tool_calls: z
      .array(
        z.strictObject({
          name: z.string(),
          arguments: z.union([z.string(), z.record(z.string(), z.json())]),
        }),
      )
      .min(1)
      .optional(),
    /** A command whose call is not JSON (or whose fence is never closed). */
    tool_json: z.literal('invalid').optional(),
    /** `length`: the answer is cut as by max_tokens. */
    finish_reason: z.literal('length').optional(),
    /** Repeats the turn this many times. */
    repeat: z.number().int().min(1).max(100_000).default(1),
    delay_ms: z.number().nonnegative().optional(),
    fault: Fault.optional(),
  })
  .superRefine((turn, context) => {
    const given = (['text', 'command', 'commands', 'submit', 'tool_calls'] as const).filter(
      (key) => turn[key] !== undefined,
    );
    if (given.length > 1) {
      context.addIssue({
        code: 'custom',
        message: `a turn says one thing, this one has ${given.join(' and ')}`,
      });
    }
    if (given.length === 0 && !turn.tool_json && !turn.finish_reason && !turn.fault) {
      context.addIssue({
        code: 'custom',
        message:
          'a turn needs one of text, command, commands, submit, tool_calls, tool_json, finish_reason, fault',
      });
    }
  });
export type Turn = z.infer<typeof Turn>;
/** A turn as users write it. */
export type TurnInput = z.input<typeof Turn>;

export const Conversation = z
  .strictObject({
    name: z.string().optional(),
    /** Substring of the first user message, or /regular expression/flags. Absent: matches all. */
    match: z.string().default(''),
    /** The same for the last message of the request, as the template renders it. */
    last: z.string().default(''),
    /** The same for all messages before the first answer. */
    opening: z.string().default(''),
    /** The instance in the request's x-swefarm-rollout header. */
    instance: z.string().optional(),
    /** Each is a list of turns; the rollout's index in its group selects one, in rotation. */
    variants: z.array(z.array(Turn).min(1)).min(1),
    /** Number of rollouts in a rotation for each variant; absent: 1 each. */
    weights: z.array(z.number().int().nonnegative()).optional(),
    /** Turns after the last turn: repetitions of the last turn, or the turns from the start. */
    after: z.enum(['repeat_last', 'restart']).default('repeat_last'),
    /** Source of the number of a turn: the answers in the request, or the earlier requests of the rollout to this conversation. */
    number: z.enum(['answers', 'requests']).default('answers'),
  })
  .superRefine((conversation, context) => {
    const { weights, variants } = conversation;
    if (weights && (weights.length !== variants.length || weights.every((weight) => weight === 0))) {
      context.addIssue({
        code: 'custom',
        path: ['weights'],
        message: `expected ${variants.length} weights, one for each variant and not all 0`,
      });
    }
    for (const path of ['match', 'last', 'opening'] as const) {
      if (regexSource(conversation[path]) && !compile(conversation[path]))
        context.addIssue({ code: 'custom', path: [path], message: 'not a regular expression' });
    }
  });
export type Conversation = z.infer<typeof Conversation>;

export const Script = z.strictObject({
  /** The one model served; absent: every name is accepted. */
  model: z.string().min(1).optional(),
  /** Language of a fenced command. */
  fence: z.string().default('bash'),
  /** First line of the output by which an agent without a submit tool submits. */
  sentinel: z.string().default('COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'),
  delay: Delay.optional(),
  faults: FaultRules.default([]),
  conversations: z.array(Conversation).min(1),
});
export type Script = z.infer<typeof Script>;
/** A script as users write it, with defaults omitted. */
export type ScriptInput = z.input<typeof Script>;

/** A script of one conversation, whatever the first message is. */
export const conversation = (...variants: TurnInput[][]): ScriptInput => ({ conversations: [{ variants }] });

/** Turns that run these commands one after the other and then submit. */
export const running = (...commands: string[]): TurnInput[] => [
  ...commands.map((command) => ({ command })),
  { submit: true },
];

/** Checks a script; `source` names it in the error. Throws UsageError `policy_script`. */
export function readScript(value: unknown, source = 'script'): Script {
  const read = Script.safeParse(value);
  if (read.success) return read.data;
  const lines = read.error.issues.map((issue) => `${issue.path.join('.') || '(top)'}: ${issue.message}`);
  throw new UsageError(`${source}: ${lines.join('; ')}`, { code: 'policy_script' });
}

/** Reads a script from a JSON or YAML file. Throws UsageError `policy_script`. */
export function loadScript(path: string): Script {
  let value: unknown;
  try {
    const text = readFileSync(path, 'utf8');
    value = path.endsWith('.json') ? JSON.parse(text) : parseYaml(text);
  } catch (error) {
    throw new UsageError(`policy script ${path}: ${errorMessage(error)}`, {
      cause: error,
      code: 'policy_script',
    });
  }
  return readScript(value, path);
}

function regexSource(match: string): [source: string, flags: string] | null {
  const parts = /^\/(.+)\/([a-z]*)$/s.exec(match);
  return parts?.[1] === undefined ? null : [parts[1], parts[2] ?? ''];
}

/** The test of a `match`; null when its regular expression is invalid. */
export function compile(match: string): ((text: string) => boolean) | null {
  const regex = regexSource(match);
  if (!regex) return (text) => text.includes(match);
  try {
    // Without the flags g and y, which would make the test stateful.
    const pattern = new RegExp(regex[0], regex[1].replace(/[gy]/g, ''));
    return (text) => pattern.test(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
