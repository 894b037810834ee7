/** What a submit writes: one run record, and per rollout a job of a few hundred bytes that refers to it. */
import { z } from 'zod';
import { AGENT_NAMES, DEFAULT_AGENT } from './agents.ts';
import { MOST, tooMany } from './bounds.ts';
import { Needs } from './needs.ts';
import { PolicyName } from './policy.ts';
import { Sampling } from './sampling.ts';
import { TOOL_PARSERS } from './toolparsers.ts';

/** Reward rows that a run may override; see grading/src/reward/reward.ts for the table itself. */
export const RewardChoice = z.enum(['zero', 'grade', 'none']);
export type RewardChoice = z.infer<typeof RewardChoice>;

const seconds = z.number().max(MOST.seconds);
const bytes = z.number().int().positive().max(MOST.bytes);
const steps = z.number().int().max(MOST.steps);

export const AgentConfig = z.object({
  type: z.enum(AGENT_NAMES).default(DEFAULT_AGENT),
  /** How the model gives its command: one fenced block, or a `bash` tool call. */
  action: z.enum(['fenced', 'tool']).default('fenced'),
  /** Name of a prompt set shipped with the worker, or the text itself (overrides win). */
  prompts: z.string().default('default'),
  prompt_overrides: z.record(z.string(), z.string()).default({}),
  /** Most turns of one rollout. */
  step_limit: steps.positive().default(250),
  /** Seconds one command may run. */
  step_timeout: seconds.positive().default(60),
  /** Seconds the agent may take in all (its clock stands still while the policy is paused). */
  time_limit: seconds.positive().default(3600),
  /** Most tokens of prompt and answer; null: only the endpoint's own limit. */
  context_limit: z.number().int().positive().max(MOST.tokens).nullable().default(null),
  /** Most tokens after the first prompt, over all turns: what a trainer takes of one rollout; null: no limit of its own. */
  max_sequence_tokens: z.number().int().positive().max(MOST.tokens).nullable().default(null),
  /** Malformed answers in a row before the rollout ends as format_limit. */
  format_limit: steps.positive().default(3),
  /** The same command this often in a row brings a warning into the observation; 0 turns it off. */
  collapse_limit: steps.nonnegative().default(3),
  /** Characters of an observation; longer ones keep head and tail. */
  observation_limit: z.number().int().positive().max(MOST.textBytes).default(10_000),
  /** What counts as the patch: the difference of the tree, or what the agent printed after the sentinel. */
  patch_source: z.enum(['tree', 'submission']).default('tree'),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** fetch refuses a URL with a user in it, and a key in a URL would be in every log. */
const EndpointUrl = z.url().refine((text) => !/^[a-z]+:\/\/[^/]*@/i.test(text), {
  error: 'expected a URL without user and password; the key goes into SWEFARM_POLICY_API_KEY',
});

/** What of `sampling` goes to the endpoint, and what stands where it says nothing: sampling.ts. */
export const PolicyConfig = z.object({
  /** Empty only when the policy `name` brings its own. */
  urls: z.array(EndpointUrl),
  model: z.string().min(1),
  /** Name under which the key lies in Redis; null when the endpoint wants none. */
  api_key_ref: z.string().nullable().default(null),
  sampling: Sampling.default({}),
  /** Further request fields, as they are. */
  extra_body: z.record(z.string(), z.json()).default({}),
  /** What is promised of token ids, and which endpoint is asked: see docs/tokens.md. */
  token_mode: z.enum(['echo', 'token-in', 'text']).default('text'),
  /** Mode `token-in`: folder with tokenizer.json and chat template on every worker; null: the endpoint's /tokenize. */
  tokenizer: z.string().nullable().default(null),
  /** Mode `token-in`: in which form the model calls tools; auto: by the markers in its answers and by its template. */
  tool_parser: z.enum(TOOL_PARSERS).default('auto'),
  /** Fail the rollout (policy_tokens) when an answer lacks token ids or breaks contiguity. */
  require_tokens: z.boolean().default(false),
  /** Experts that the endpoint tells for each token: `auto` keeps them where tokens are required; see docs/tokens.md. */
  routed_experts: z.enum(['auto', 'require', 'drop']).default('auto'),
  version: z.string().nullable().default(null),
  /** The policy whose record this run follows; null: `default`, when the two share an endpoint. */
  name: PolicyName.nullable().default(null),
  /** Whether answers are asked for as a stream; `auto`: where token ids come with one (docs/tokens.md). */
  stream: z.enum(['auto', 'on', 'off']).default('auto'),
  /** Seconds to wait for one answer; of a streamed one for its first, or next, chunk. */
  request_timeout: seconds.positive().default(600),
  /** Seconds during which a refused or overloaded endpoint is tried again within one turn. */
  patience: seconds.nonnegative().default(60),
});
export type PolicyConfig = z.infer<typeof PolicyConfig>;

export const Network = z.enum(['none', 'egress']);
export type Network = z.infer<typeof Network>;

export const SandboxConfig = z.object({
  agent_network: Network.default('none'),
  eval_network: Network.default('none'),
  cpus: z.number().positive().max(MOST.cpus).default(1),
  memory_bytes: bytes.default(4 * 1024 ** 3),
  pids: z.number().int().positive().max(MOST.pids).default(512),
  /** Where the runtime can; null: no limit. */
  disk_bytes: bytes.nullable().default(null),
  /** Shell text that activates the environment, sourced once per sandbox. */
  activate: z.string().default('source /opt/miniconda3/bin/activate && conda activate testbed'),
  workdir: z.string().default('/testbed'),
});
export type SandboxConfig = z.infer<typeof SandboxConfig>;

export const EvaluationConfig = z.object({
  enabled: z.boolean().default(true),
  grader: z.enum(['auto', 'swebench-4.1.0', 'swebench-5.0.2', 'swegym']).default('auto'),
  /** Seconds the eval script may run. */
  timeout: seconds.positive().default(1800),
  /** Bytes of the test log that are kept; the middle goes. */
  log_limit: z
    .number()
    .int()
    .positive()
    .max(MOST.textBytes)
    .default(64 * 1024 ** 2),
  /** Variables set in the evaluation beside the image's own, to make its tests repeatable; official behaviour without. */
  envelope: z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string()).default({}),
});
export type EvaluationConfig = z.infer<typeof EvaluationConfig>;

/** Rollouts of one group. */
const group = z.number().int().max(MOST.group);

export const RunRecord = z
  .object({
    format: z.literal('swefarm-run-1'),
    /** What whoever works on it must know of. */
    needs: Needs,
    run_id: z.string(),
    /** ISO 8601, UTC. */
    created_at: z.string().refine((text) => !Number.isNaN(Date.parse(text)), { error: 'expected a time' }),
    /** Class of priority: validation and sessions 0, training 1, collection 2. */
    kind: z.enum(['validation', 'session', 'training', 'collection']).default('collection'),
    dataset: z.object({
      path: z.string(),
      sha256: z.string(),
      instances: z.number().int().nonnegative().max(MOST.instances),
    }),
    group_size: group.positive(),
    /** When the run ends with what is there: milliseconds since the epoch; null: when all is done. */
    deadline_at: z.number().int().min(-MOST.instantMs).max(MOST.instantMs).nullable().default(null),
    /** Usable results that are enough for a group: its other rollouts are then cancelled. null: all are waited for. */
    min_group: group.positive().nullable().default(null),
    /** Rollouts that a group starts beyond `group_size`; the first so many usable ones end it. */
    oversample: group.nonnegative().default(0),
    /** Rollouts per group that may be started in place of ones lost to infrastructure. */
    refills: group.nonnegative().default(0),
    /** Most versions that the policy may be ahead of a running rollout before it is cancelled; null: no limit. */
    max_staleness: z.number().int().nonnegative().max(MOST.versions).nullable().default(null),
    /** Share of rollouts failed by infrastructure at which the run pauses itself; null: never. */
    infra_pause_share: z.number().positive().max(1).nullable().default(0.5),
    /** Rollouts are appended while it lives, as calls come in; its groups are as large as the callers make them. */
    open: z.boolean().default(false),
    agent: AgentConfig,
    policy: PolicyConfig.nullable(),
    sandbox: SandboxConfig,
    evaluation: EvaluationConfig,
    reward: z.object({
      table: z.string(),
      hash: z.string(),
      overrides: z.record(z.string(), RewardChoice).default({}),
      /** Results of the `host` dry run carry no reward unless this is set. */
      host: z.boolean().default(false),
    }),
    /** Seconds that results and artifacts of this run are kept in Redis. */
    ttl: z
      .number()
      .int()
      .positive()
      .max(MOST.ttlSeconds)
      .default(7 * 24 * 3600),
  })
  .superRefine((run, context) => {
    // One of them alone is refused by its own name.
    const alone = [run.group_size, run.oversample, run.refills].some((count) => count > MOST.group);
    const problem = alone ? null : tooMany(run, run.dataset.instances);
    if (problem) context.addIssue({ code: 'custom', path: ['group_size'], message: problem });
  });
export type RunRecord = z.infer<typeof RunRecord>;

/** Rollouts that each group starts with; refills come on top, one for each that failed. */
export const startedGroup = (run: Pick<RunRecord, 'group_size' | 'oversample'>): number =>
  run.group_size + run.oversample;

/** Rollouts that a submitted run starts with. */
export const startedRollouts = (run: Pick<RunRecord, 'group_size' | 'oversample' | 'dataset'>): number =>
  startedGroup(run) * run.dataset.instances;

/** The BullMQ payload. All else is in the run's records in Redis. */
export const RolloutJob = z.object({
  /** What whoever works on it must know of. */
  needs: Needs.optional(),
  rollout_id: z.string(),
  run_id: z.string(),
  instance_id: z.string(),
  rollout_index: z.number().int().nonnegative().max(MOST.opened),
  /** Patch for agent `patch`: the key of a blob among the run's records; absent otherwise. */
  patch_ref: z.string().optional(),
  /** For placement; absent where whoever made the job did not know it. */
  image: z.string().optional(),
  /** It failed once: whoever claims it next runs it, whatever its image. */
  anywhere: z.boolean().optional(),
  /** Claim of an attempt that had its time to come back for this job after an outage; it is waited for no more. */
  passed: z.string().optional(),
  /** Milliseconds since the epoch at submit, for the time spent in the queue. */
  submitted_at: z.number(),
});
export type RolloutJob = z.infer<typeof RolloutJob>;
