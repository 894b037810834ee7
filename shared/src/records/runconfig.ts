/** Sections `policy`, `sandbox` and `evaluation` of a run record; agentconfig.ts has `agent`. A field that a submitter may set declares its flag and help. */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { EndpointUrl, PolicyName } from './policy.ts';
import { Price } from './price.ts';
import { Sampling } from './sampling.ts';
import { setting } from './setting.ts';
import { TOOL_PARSERS } from './toolparsers.ts';

/** Choices for a row of the reward table (grading/src/reward/reward.ts). */
export const RewardChoice = z.enum(['zero', 'grade', 'none']);
export type RewardChoice = z.infer<typeof RewardChoice>;

const seconds = z.number().max(MOST.seconds);
const bytes = z.number().int().positive().max(MOST.bytes);
const textBytes = z.number().int().positive().max(MOST.textBytes);
const LOG_BYTES = 64 * 1024 ** 2;
const MOST_HEADERS = 32;

/** Names of headers, except those that the HTTP client sends itself. */
const HEADER_NAME =
  /^(?!(?:accept|accept-encoding|authorization|connection|content-length|content-type|host|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent|x-swefarm-.*)$)[A-Za-z0-9][A-Za-z0-9-]{0,63}$/i;

/** Headers that carry credentials. A policy must not have them, because its headers are stored in records, which contain no secrets. */
const CREDENTIALS =
  /^(?:proxy-)?auth(?:orization|enticate)$|^(?:set-)?cookie2?$|(?:^|-)api-?key$|(?:^|-)token$/i;

const Headers = z
  .record(
    z
      .string()
      .regex(HEADER_NAME, 'expected the name of a header that the farm does not send itself')
      .refine((name) => !CREDENTIALS.test(name), {
        error: 'expected no header with a credential: the key goes into SWEFARM_POLICY_API_KEY',
      }),
    z
      .string()
      .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,998}[\x21-\x7e])?$/, 'expected 1 to 1000 characters of ASCII'),
  )
  .refine((headers) => Object.keys(headers).length <= MOST_HEADERS, {
    error: `expected at most ${MOST_HEADERS} headers`,
  });

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
      .regex(HEADER_NAME, 'expected the name of a header that the farm does not send itself')
      .nullable()
      .default(null),
  ),
  headers: setting(
    '--policy-header <name=value>',
    'header of each request to the policy; no credentials',
    Headers.default({}),
  ),
});
export type PolicyConfig = z.infer<typeof PolicyConfig>;

/** Changes that one rollout makes to the policy of its run. */
export const RolloutPolicy = z.object({
  /** Endpoints of this rollout, with the reference of their API key; null: the endpoints of the run. */
  urls: z.array(EndpointUrl).min(1).nullable().default(null),
  api_key_ref: z.string().nullable().default(null),
  /** Request fields and headers that are added to those of the run, and replace those with the same name. */
  extra_body: z.record(z.string(), z.json()).default({}),
  headers: Headers.default({}),
});
export type RolloutPolicy = z.infer<typeof RolloutPolicy>;

/** Returns the policy of the run with the changes of one rollout. */
export function policyOfRollout(run: PolicyConfig, own: RolloutPolicy): PolicyConfig {
  const { urls, api_key_ref } = own;
  return {
    ...run,
    ...(urls === null ? {} : { urls, api_key_ref }),
    extra_body: { ...run.extra_body, ...own.extra_body },
    headers: { ...run.headers, ...own.headers },
  };
}

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
