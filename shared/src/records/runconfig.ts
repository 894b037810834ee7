/** Sections of a run record: agent, policy, sandbox, evaluation. A field that a submitter may set declares its flag and help. */
import { z } from 'zod';
import { AGENT_NAMES, agentsWith, DEFAULT_AGENT } from './agents.ts';
import { MOST } from './bounds.ts';
import { AgentCard } from './card.ts';
import { PicturesMode } from './picture.ts';
import { PolicyName } from './policy.ts';
import { Price } from './price.ts';
import { Sampling } from './sampling.ts';
import { setting } from './setting.ts';
import { TOOL_PARSERS } from './toolparsers.ts';
import { PromptSet, Toolset } from './toolset.ts';

/** Choices for a row of the reward table (grading/src/reward/reward.ts). */
export const RewardChoice = z.enum(['zero', 'grade', 'none']);
export type RewardChoice = z.infer<typeof RewardChoice>;

const seconds = z.number().max(MOST.seconds);
const bytes = z.number().int().positive().max(MOST.bytes);
const textBytes = z.number().int().positive().max(MOST.textBytes);
const LOG_BYTES = 64 * 1024 ** 2;
const tokens = z.number().int().positive().max(MOST.tokens);
const steps = z.number().int().max(MOST.steps);

export const AgentConfig = z.object({
  type: setting(
    '--agent <agent>',
    'who works on the instance: mini asks a model, golden and noop need none, patch applies --patches',
    z.enum(AGENT_NAMES).default(DEFAULT_AGENT),
    { choices: agentsWith({ byName: true }) },
  ),
  card: setting(
    '--agent-card <file>',
    'card of an agent of your own that comes as a program, instead of --agent (docs/agents.md)',
    AgentCard.nullable().default(null),
    { form: 'card' },
  ),
  /** Values of the card's options. */
  options: setting(
    '--agent-option <key=value>',
    "value of an option of the agent's card; see swefarm agents list",
    z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
  ),
  option_files: setting(
    '--agent-file <option=file>',
    "file for an option of the agent's card that takes one",
    z.record(z.string(), z.string().max(MOST.textBytes)).default({}),
    { form: 'file' },
  ),
  train_lines: setting(
    '--train-lines <which>',
    'lines of an agent that comes as a program that are trained on; abandoned: also answers that were never continued',
    z.enum(['all', 'main', 'abandoned']).default('all'),
  ),
  whole_prompt_limit: setting(
    '--whole-prompt-limit <n>',
    'most prompts of an agent that comes as a program that continue no earlier answer, such as the first of a sub-agent',
    steps.positive().default(16),
  ),
  answer_limit: setting(
    '--answer-limit <tokens>',
    'most tokens that the model may answer in a rollout (default: no limit)',
    tokens.nullable().default(null),
  ),
  cost_limit: setting(
    '--cost-limit <dollars>',
    'most US dollars that the answers of a rollout may cost, by --prices (default: no limit)',
    z.number().positive().max(1e6).nullable().default(null),
  ),
  action: setting(
    '--action <form>',
    'how the model acts: one fenced block, tool calls, or one patch as its answer',
    z.enum(['fenced', 'tool', 'patch']).default('fenced'),
  ),
  prompts: setting(
    '--prompts <name>',
    'prompt sets: a name that comes with swefarm, or files with weights, a.yaml=0.7,b.yaml=0.3',
    z.union([z.string(), z.array(PromptSet).min(1).max(16)]).default('default'),
  ),
  /** Empty: bash and submit_solution, if `action` is `tool`. */
  toolset: setting(
    '--toolset <names>',
    'toolsets: bash, edit, or files, with weights: edit=0.5,own.yaml=0.5 (default: the tools of --action)',
    z.array(Toolset).max(16).default([]),
  ),
  prompt_overrides: setting(
    '--prompt <key=file>',
    'replace one text of the prompt set by the content of a file',
    z.record(z.string(), z.string()).default({}),
    { form: 'file' },
  ),
  step_limit: setting('--step-limit <n>', 'most turns of a rollout', steps.positive().default(250)),
  step_timeout: setting(
    '--step-timeout <seconds>',
    'longest time of one command',
    seconds.positive().default(60),
  ),
  time_limit: setting(
    '--time-limit <seconds>',
    'longest time of the agent in all; it does not run while the policy is paused',
    seconds.positive().default(3600),
  ),
  context_limit: setting(
    '--context-limit <tokens>',
    "most tokens of prompt and answer (default: the endpoint's own limit)",
    tokens.nullable().default(null),
  ),
  max_sequence_tokens: setting(
    '--max-sequence-tokens <n>',
    'most tokens after the first prompt, over all turns (default: no limit)',
    tokens.nullable().default(null),
  ),
  format_limit: setting(
    '--format-limit <n>',
    'malformed answers in a row that end a rollout',
    steps.positive().default(3),
  ),
  collapse_limit: setting(
    '--collapse-limit <n>',
    'warn the model after the same command so often in a row; 0: never',
    steps.nonnegative().default(3),
  ),
  observation_limit: setting(
    '--observation-limit <chars>',
    'most characters of an observation; the middle of a longer one is cut out',
    textBytes.default(10_000),
  ),
  resume_turns: setting(
    '--resume-turns <when>',
    'continue a rollout that lost its worker from its recorded turns; auto: where the tokens are exact',
    z.enum(['auto', 'on', 'off']).default('auto'),
  ),
  pictures: setting(
    '--pictures <how>',
    'pictures of an issue: sent to the model, or left out so that it gets the text alone',
    PicturesMode.default('send'),
  ),
  max_submits: setting(
    '--max-submits <n>',
    'submits of agent mini: after each but the last whose tests fail it gets feedback and goes on (docs/prompts.md)',
    z.number().int().positive().max(20).default(1),
  ),
  feedback: setting(
    '--feedback <what>',
    'what feedback on a submit tells: that the tests failed, or also which, by their names',
    z.enum(['verdict', 'tests']).default('verdict'),
  ),
  after_submit: setting(
    '--after-submit <what>',
    'the repository after a submit that failed: left as it is, or reset to its first state',
    z.enum(['keep', 'reset']).default('keep'),
  ),
  patch_source: setting(
    '--patch-source <source>',
    'what the patch is: the changes of the tree, or what the agent printed when it submitted',
    z.enum(['tree', 'submission']).default('tree'),
  ),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** A URL without user and password: `fetch` refuses a URL with a user, and logs would show the password. */
const EndpointUrl = z.url().refine((text) => !/^[a-z]+:\/\/[^/]*@/i.test(text), {
  error: 'expected a URL without user and password; the key goes into SWEFARM_POLICY_API_KEY',
});

/** Names of headers, except those that the HTTP client sends itself. */
const SESSION_HEADER =
  /^(?!(?:accept|accept-encoding|authorization|connection|content-length|content-type|host|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent|x-swefarm-.*)$)[A-Za-z0-9][A-Za-z0-9-]{0,63}$/i;

/** Policy of a run. sampling.ts decides which sampling keys a request contains. */
export const PolicyConfig = z.object({
  /** Endpoints of the policy; empty only if the policy `name` has endpoints. */
  urls: setting('--policy-url <url>', 'OpenAI-compatible endpoint', z.array(EndpointUrl)),
  model: setting('--model <name>', 'name of the model at the endpoint', z.string().min(1)),
  /** Name of the API key in Redis; null: no API key. */
  api_key_ref: z.string().nullable().default(null),
  /** Price of the model when the run was submitted, for the counted costs; absent: unknown. */
  price: Price.exactOptional(),
  sampling: Sampling.default({}),
  extra_body: setting(
    '--extra-body <json>',
    'further fields of each request, as a JSON object',
    z.record(z.string(), z.json()).default({}),
    { form: 'json' },
  ),
  token_mode: setting(
    '--token-mode <mode>',
    'how token ids stay exact (docs/tokens.md)',
    z.enum(['echo', 'token-in', 'text']).default('text'),
  ),
  tokenizer: setting(
    '--tokenizer <folder>',
    "for token-in: tokenizer.json and chat template on every worker (default: the endpoint's /tokenize)",
    z.string().nullable().default(null),
  ),
  tool_parser: setting(
    '--tool-parser <form>',
    'for token-in: how the model writes tool calls; auto: told by its answers and its template',
    z.enum(TOOL_PARSERS).default('auto'),
  ),
  require_tokens: setting(
    '--require-tokens',
    'fail a rollout (policy_tokens) when token ids are missing or not contiguous; training needs it',
    z.boolean().default(false),
  ),
  routed_experts: setting(
    '--routed-experts <how>',
    'expert choices that the endpoint tells for each token; auto: stored where tokens are required',
    z.enum(['auto', 'require', 'drop']).default('auto'),
  ),
  version: setting(
    '--policy-version <name>',
    'the weights, as the trainer names them',
    z.string().nullable().default(null),
  ),
  /** Name of the policy that the run follows; null: `default`, if that policy shares an endpoint with the run or has none. */
  name: setting(
    '--policy-name <name>',
    'the policy whose announced versions the run follows; see swefarm policy',
    PolicyName.nullable().default(null),
  ),
  stream: setting(
    '--stream <when>',
    'ask for answers as a stream; auto: where token ids come with one',
    z.enum(['auto', 'on', 'off']).default('auto'),
  ),
  request_timeout: setting(
    '--request-timeout <seconds>',
    'longest wait for an answer, or for the next chunk of a streamed one',
    seconds.positive().default(600),
  ),
  patience: setting(
    '--patience <seconds>',
    'how long one turn tries an endpoint that refuses or is overloaded',
    seconds.nonnegative().default(60),
  ),
  admission: setting(
    '--admission <how>',
    'rollouts of the policy that may play at once on the whole farm: auto (by the load of its endpoints), off, or a number',
    z
      .union([z.enum(['auto', 'off']), z.number().int().positive().max(MOST.rollouts)], {
        error: 'expected auto, off or a number of rollouts',
      })
      .default('auto'),
  ),
  session_header: setting(
    '--session-header <name>',
    'header of each request with the id of the rollout, for routers that bind a session to a server',
    z
      .string()
      .regex(SESSION_HEADER, 'expected the name of a header that the farm does not send itself')
      .nullable()
      .default(null),
  ),
});
export type PolicyConfig = z.infer<typeof PolicyConfig>;

const Network = z.enum(['none', 'egress']);

export const SandboxConfig = z.object({
  agent_network: setting('--agent-network <net>', 'network of the agent', Network.default('none')),
  eval_network: setting('--eval-network <net>', 'network of the evaluation', Network.default('none')),
  cpus: setting('--cpus <n>', 'CPUs of a sandbox', z.number().positive().max(MOST.cpus).default(1)),
  memory_bytes: setting(
    '--memory <size>',
    'memory of a sandbox, such as 512m or 4g',
    bytes.default(4 * 1024 ** 3),
    { form: 'size' },
  ),
  pids: setting(
    '--pids <n>',
    'most processes of a sandbox',
    z.number().int().positive().max(MOST.pids).default(512),
  ),
  disk_bytes: setting(
    '--disk <size>',
    'disk of a sandbox, where the runtime can limit it (default: no limit)',
    bytes.nullable().default(null),
    { form: 'size' },
  ),
  activate: setting(
    '--activate <shell>',
    "shell text that activates the environment, sourced once per sandbox (default: conda's testbed)",
    z.string().default('source /opt/miniconda3/bin/activate && conda activate testbed'),
  ),
  workdir: setting('--workdir <path>', 'the repository in the image', z.string().default('/testbed')),
});

export const EvaluationConfig = z.object({
  enabled: setting('--no-eval', 'do not grade; rollouts carry no reward', z.boolean().default(true)),
  grader: setting(
    '--grader <name>',
    'whose rules decide; auto: those of the dataset family',
    z.enum(['auto', 'swebench-4.1.0', 'swebench-5.0.2', 'swegym']).default('auto'),
  ),
  grade_once: setting(
    '--grade-once <when>',
    'whether rollouts with the same patch take the verdict of one: each verdict, only an unresolved one, or none',
    z.enum(['on', 'unresolved', 'off']).default('unresolved'),
  ),
  timeout: setting('--eval-timeout <seconds>', 'longest time of the tests', seconds.positive().default(1800)),
  log_limit: setting(
    null,
    'bytes of the test log that are stored; of a longer one the middle is cut out',
    textBytes.default(LOG_BYTES),
  ),
  envelope: setting(
    '--determinism',
    'run the tests with TZ=UTC, LANG=C.UTF-8 and PYTHONHASHSEED=0; the harness sets none of them',
    z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string()).default({}),
    { constant: { TZ: 'UTC', LANG: 'C.UTF-8', PYTHONHASHSEED: '0' } },
  ),
});
