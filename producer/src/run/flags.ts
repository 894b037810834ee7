/** Every option of a run, once: its flag, where it lies in the run's record, how its text is read. Help, merging and error messages come from here. */
import { readFileSync } from 'node:fs';
import { agentsWith, type SamplingKey, TOOL_PARSERS, UsageError } from '@swefarm/shared';

export type RunFlag = {
  flag: string;
  /** Keys into the RunRecord. */
  path: readonly string[];
  help: string;
  group: string;
  read: (text: string) => unknown;
  choices?: readonly string[];
  /** May be given several times; values gather in a list or, as `key=value`, in an object. */
  many?: 'list' | 'map';
  /** A switch without a value sets this. */
  constant?: unknown;
};

const text = (value: string): string => value;

function number(value: string): number {
  const parsed = Number(value);
  if (value.trim() === '' || !Number.isFinite(parsed))
    throw new UsageError(`expected a number, got "${value}"`);
  return parsed;
}

const UNITS: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** `4g`, `512m`, `1048576`: bytes in powers of 1024. */
function parseBytes(value: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(value.trim());
  if (!match) throw new UsageError(`expected a size such as 4g or 512m, got "${value}"`);
  return Math.round(Number(match[1]) * (UNITS[(match[2] ?? '').toLowerCase()] ?? 1));
}

function json(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new UsageError(`expected JSON, got ${value.slice(0, 60)} (${(error as Error).message})`);
  }
}

function fileContent(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path}: cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

const agent = (flag: string, key: string, help: string, read: RunFlag['read'] = number): RunFlag => ({
  flag,
  path: ['agent', key],
  help,
  read,
  group: 'Agent:',
});
const policy = (flag: string, path: string[], help: string, read: RunFlag['read'] = number): RunFlag => ({
  flag,
  path: ['policy', ...path],
  help,
  read,
  group: 'Policy:',
});
const sampling = (flag: string, key: SamplingKey, help: string, read?: RunFlag['read']): RunFlag =>
  policy(flag, ['sampling', key], help, read);
const sandbox = (flag: string, key: string, help: string, read: RunFlag['read'] = number): RunFlag => ({
  flag,
  path: ['sandbox', key],
  help,
  read,
  group: 'Sandbox:',
});

const run = (flag: string, key: string, help: string, read: RunFlag['read'] = number): RunFlag => ({
  flag,
  path: [key],
  help,
  read,
  group: 'Run:',
});

const SECONDS: Record<string, number> = { '': 1, s: 1, m: 60, h: 3600, d: 24 * 3600 };

/** Milliseconds of a span such as `30m`; null for what is none. */
export function spanMs(value: string): number | null {
  const span = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(value.trim());
  return span && Math.round(Number(span[1]) * (SECONDS[span[2] ?? ''] ?? 1) * 1000);
}

/** Milliseconds since the epoch at which a run that is submitted now ends, by our clock: `timed` puts Redis's in its place. */
function deadline(value: string): number {
  const span = spanMs(value);
  const instant = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN;
  const at = span === null ? instant : Date.now() + span;
  if (Number.isNaN(at))
    throw new UsageError(`expected a time such as 30m, 2h or 2026-01-02T03:04Z, got "${value}"`);
  return Math.round(at);
}

const NETWORKS = ['none', 'egress'];

export const RUN_FLAGS: readonly RunFlag[] = [
  {
    ...agent('--agent <agent>', 'type', 'who works on the instance', text),
    choices: agentsWith({ byName: true }),
  },
  {
    flag: '--group-size <n>',
    path: ['group_size'],
    help: 'rollouts per instance (default: 1)',
    read: number,
    group: 'Run:',
  },
  {
    flag: '--kind <kind>',
    path: ['kind'],
    help: 'class of priority (default: collection)',
    read: text,
    choices: ['validation', 'training', 'collection'],
    group: 'Run:',
  },
  run(
    '--deadline <time>',
    'deadline_at',
    'end with what is there after so long (30m, 2h, seconds) or at an ISO time',
    deadline,
  ),
  run(
    '--min-group <n>',
    'min_group',
    'so many usable rollouts are enough for a group: the others are cancelled',
  ),
  run(
    '--oversample <n>',
    'oversample',
    'start so many more per group; the first --group-size usable ones end it',
  ),
  run('--refills <n>', 'refills', 'per group, run so many again in place of ones lost to infrastructure'),
  run('--max-staleness <n>', 'max_staleness', 'cancel when the policy is more than so many versions ahead'),
  run(
    '--infra-pause-share <share>',
    'infra_pause_share',
    'pause at this share of infrastructure failures (0.5)',
  ),
  {
    flag: '--ttl <seconds>',
    path: ['ttl'],
    help: 'how long Redis keeps results and artifacts',
    read: number,
    group: 'Run:',
  },
  {
    ...agent('--action <how>', 'action', 'how the model gives its command', text),
    choices: ['fenced', 'tool'],
  },
  agent('--prompts <name>', 'prompts', 'prompt set of the worker', text),
  {
    ...agent(
      '--prompt <key=file>',
      'prompt_overrides',
      'replace one prompt by a file (repeatable)',
      fileContent,
    ),
    many: 'map',
  },
  agent('--step-limit <n>', 'step_limit', 'most turns of a rollout'),
  agent('--step-timeout <seconds>', 'step_timeout', 'most time of one command'),
  agent('--time-limit <seconds>', 'time_limit', 'most time of the agent'),
  agent('--context-limit <tokens>', 'context_limit', 'most tokens of prompt and answer'),
  agent('--max-sequence-tokens <n>', 'max_sequence_tokens', 'most tokens after the first prompt, all turns'),
  agent('--format-limit <n>', 'format_limit', 'malformed answers in a row that end a rollout'),
  agent('--collapse-limit <n>', 'collapse_limit', 'equal commands in a row that bring a warning; 0: never'),
  agent('--observation-limit <chars>', 'observation_limit', 'longer observations keep head and tail'),
  {
    ...agent('--patch-source <source>', 'patch_source', 'what counts as the patch', text),
    choices: ['tree', 'submission'],
  },
  {
    ...policy('--policy-url <url>', ['urls'], 'OpenAI-compatible endpoint (repeatable)', text),
    many: 'list',
  },
  policy('--model <name>', ['model'], 'model name at the endpoint', text),
  policy('--policy-version <name>', ['version'], 'the weights, as the trainer names them', text),
  policy('--policy-name <name>', ['name'], "the trainer's name for the policy; see swefarm policy", text),
  sampling('--temperature <t>', 'temperature', 'sampling temperature'),
  sampling('--top-p <p>', 'top_p', 'nucleus sampling'),
  sampling('--top-k <n>', 'top_k', 'only the n likeliest tokens; -1: all'),
  sampling('--min-p <p>', 'min_p', 'only tokens at least p times as likely as the likeliest'),
  sampling('--repetition-penalty <r>', 'repetition_penalty', 'above 1: what was said before is less likely'),
  sampling('--presence-penalty <p>', 'presence_penalty', 'above 0: tokens that were sampled are less likely'),
  sampling('--frequency-penalty <p>', 'frequency_penalty', 'the same, by how often they were'),
  {
    ...sampling('--stop <text>', 'stop', 'ends an answer (repeatable)', text),
    many: 'list',
  },
  sampling('--max-tokens <n>', 'max_tokens', 'most tokens of one answer, held to the room that is left'),
  sampling('--seed <n>', 'seed', 'first seed: each rollout and turn samples with its own, counted from it'),
  policy('--extra-body <json>', ['extra_body'], 'further request fields', json),
  {
    ...policy('--token-mode <mode>', ['token_mode'], 'what is promised of token ids', text),
    choices: ['echo', 'token-in', 'text'],
  },
  policy('--tokenizer <folder>', ['tokenizer'], "token-in without the endpoint's /tokenize", text),
  {
    ...policy('--tool-parser <form>', ['tool_parser'], 'how the model writes tool calls, in token-in', text),
    choices: TOOL_PARSERS,
  },
  {
    ...policy('--require-tokens', ['require_tokens'], 'fail rollouts whose token ids are missing'),
    constant: true,
  },
  {
    ...policy(
      '--routed-experts <how>',
      ['routed_experts'],
      'experts that the endpoint tells per token',
      text,
    ),
    choices: ['auto', 'require', 'drop'],
  },
  {
    ...policy('--stream <when>', ['stream'], 'ask for answers as a stream (default: auto)', text),
    choices: ['auto', 'on', 'off'],
  },
  policy('--request-timeout <seconds>', ['request_timeout'], 'longest silence of an answer'),
  policy('--patience <seconds>', ['patience'], 'try a refusing endpoint again within one turn'),
  { ...sandbox('--agent-network <net>', 'agent_network', 'network of the agent', text), choices: NETWORKS },
  {
    ...sandbox('--eval-network <net>', 'eval_network', 'network of the evaluation', text),
    choices: NETWORKS,
  },
  sandbox('--cpus <n>', 'cpus', 'CPUs per sandbox'),
  sandbox('--memory <size>', 'memory_bytes', 'memory per sandbox, as 4g', parseBytes),
  sandbox('--pids <n>', 'pids', 'processes per sandbox'),
  sandbox('--disk <size>', 'disk_bytes', 'disk per sandbox, where the runtime can', parseBytes),
  sandbox('--activate <shell>', 'activate', 'shell text that activates the environment', text),
  sandbox('--workdir <path>', 'workdir', 'the repository in the image', text),
  {
    flag: '--no-eval',
    path: ['evaluation', 'enabled'],
    help: 'do not grade; rollouts carry no reward',
    read: text,
    constant: false,
    group: 'Evaluation and reward:',
  },
  {
    flag: '--grader <name>',
    path: ['evaluation', 'grader'],
    help: 'whose rules decide',
    read: text,
    choices: ['auto', 'swebench-4.1.0', 'swebench-5.0.2', 'swegym'],
    group: 'Evaluation and reward:',
  },
  {
    flag: '--eval-timeout <seconds>',
    path: ['evaluation', 'timeout'],
    help: 'most time of the tests',
    read: number,
    group: 'Evaluation and reward:',
  },
  {
    flag: '--determinism',
    path: ['evaluation', 'envelope'],
    help: 'tests run with TZ=UTC, LANG=C.UTF-8 and PYTHONHASHSEED=0; the harness sets none',
    read: text,
    constant: { TZ: 'UTC', LANG: 'C.UTF-8', PYTHONHASHSEED: '0' },
    group: 'Evaluation and reward:',
  },
  {
    flag: '--reward-override <row=choice>',
    path: ['reward', 'overrides'],
    help: 'zero, grade or none for a row of the reward table (repeatable)',
    read: text,
    many: 'map',
    group: 'Evaluation and reward:',
  },
  {
    flag: '--allow-host-reward',
    path: ['reward', 'host'],
    help: 'results of the host dry run carry rewards',
    read: text,
    constant: true,
    group: 'Evaluation and reward:',
  },
];

/** The long name of a flag: `--step-limit`. */
export const flagName = (flag: RunFlag): string => flag.flag.split(' ')[0] ?? flag.flag;

/** The key under which commander keeps a flag's value; `--no-x` is kept under `x`. */
export function flagKey(flag: RunFlag): string {
  const name = flagName(flag).replace(/^--(no-)?/, '');
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The value of one flag as the record wants it. Throws UsageError naming the flag. */
export function readFlag(flag: RunFlag, given: unknown): unknown {
  const read = (value: string): unknown => {
    try {
      return flag.read(value);
    } catch (error) {
      if (error instanceof UsageError)
        throw new UsageError(`${flagName(flag)}: ${error.message}`, { cause: error });
      throw error;
    }
  };
  if (flag.many === undefined) return read(String(given));
  const texts = given as string[];
  if (flag.many === 'list') return texts.map(read);
  return Object.fromEntries(
    texts.map((pair) => {
      const at = pair.indexOf('=');
      if (at <= 0) throw new UsageError(`${flagName(flag)}: expected key=value, got "${pair}"`);
      return [pair.slice(0, at), read(pair.slice(at + 1))];
    }),
  );
}
