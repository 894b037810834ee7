/**
 * Reads a row that NeMo Gym's callers post to `/run`. The instance is in the fields of the row (mini_swe_agent) or in strings of the
 * request's metadata (swe_agents).
 */
import { type RowOptions, type RowProblem, toInstance } from '@swefarm/datasets';
import {
  EndpointUrl,
  type Instance,
  MOST,
  RewardWeights,
  RolloutPolicy,
  Sampling,
  Secret,
} from '@swefarm/shared';
import { z } from 'zod';

const Urls = z.union(
  [EndpointUrl.transform((url) => [url]), z.array(EndpointUrl).min(1)],
  'expected a URL without user and password, or a list of such URLs',
);

const { shape } = Sampling;
/** Sampling keys of the Responses API, and further keys under the names that swefarm uses. */
const sampled = {
  temperature: shape.temperature.nullish(),
  top_p: shape.top_p.nullish(),
  top_k: shape.top_k.nullish(),
  min_p: shape.min_p.nullish(),
  repetition_penalty: shape.repetition_penalty.nullish(),
  presence_penalty: shape.presence_penalty.nullish(),
  frequency_penalty: shape.frequency_penalty.nullish(),
  stop: z.union([shape.stop, z.string().transform((text) => [text])]).nullish(),
  seed: shape.seed.nullish(),
};

const ModelName = z.string().min(1);
const Version = z.string().min(1).max(200);

/**
 * Policy of one rollout. `model` and `version` are settings of the run, as the row's top-level fields are. The other fields apply only to this
 * rollout, so that rows with different addresses share a run.
 */
const RowPolicy = z.strictObject({
  urls: Urls.nullish(),
  model: ModelName.nullish(),
  version: Version.nullish(),
  extra_body: RolloutPolicy.shape.extra_body.nullish(),
  headers: RolloutPolicy.shape.headers.nullish(),
});

/** Schema of a row. Fields that are not listed are allowed. */
export const GymRow = z.looseObject({
  responses_create_params: z.looseObject({
    input: z
      .union([z.string(), z.array(z.looseObject({}))], 'expected a text, or a list of items')
      .optional(),
    ...sampled,
    max_output_tokens: shape.max_tokens.nullish(),
    model: z.string().nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
  }),
  agent_ref: z.looseObject({ name: z.string() }).nullish(),
  instance_id: z.string().nullish(),
  policy_base_url: Urls.nullish(),
  policy_api_key: z.string().min(1).nullish(),
  policy_model_name: ModelName.nullish(),
  /** Version of the policy for this call, used if neither the endpoint nor the policy's record names a version. */
  policy_version: Version.nullish(),
  policy: RowPolicy.nullish(),
  /** Maximum number of tokens after the first prompt; a value above the caller's configured limit has no effect. */
  max_sequence_tokens: z.number().int().positive().max(MOST.tokens).nullish(),
  /** Weights of the parts of the reward, as in `--reward`; they replace those of the caller. */
  reward_weights: RewardWeights.nullish(),
  /** Whether the answer also has the output of the lines beside the main line, of an agent that comes as a program. */
  trajectory_lines: z.enum(['main', 'all']).nullish(),
  /** Whether a rollout that a token limit cut is masked; absent: the caller's entry decides. */
  mask_overlong: z.boolean().nullish(),
  /** Whether the answer includes the experts of each token; absent: only if the run requires them. */
  routed_experts: z.boolean().nullish(),
  _ng_task_index: z.number().int().nullish(),
  _ng_rollout_index: z.number().int().nullish(),
  _ng_attempt_index: z.number().int().nullish(),
  /** Index of the row in its group or batch in NeMo RL. */
  _rowidx: z.number().int().nullish(),
  /** Timeout of the caller, in seconds from the start of the call. */
  rollout_timeout_s: z.number().positive().nullish(),
  /** Rollout id with the pattern of Gym (nemo_gym/rollout_correlation.py). */
  _ng_rollout_id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"')
    .max(300)
    .nullish(),
});
export type GymRow = z.infer<typeof GymRow>;

/**
 * Returns the policy settings of a row; null: the row does not set the value. `model` replaces a configured model. `requestModel` does not.
 * `own`: settings that apply only to this rollout.
 */
export function policyOf(row: GymRow) {
  const params = row.responses_create_params;
  const { urls, extra_body, headers } = row.policy ?? {};
  const own = { urls: urls ?? null, extra_body: extra_body ?? {}, headers: headers ?? {} };
  const isOwn = urls || Object.keys({ ...own.extra_body, ...own.headers }).length > 0;
  return {
    urls: row.policy_base_url ?? null,
    apiKey: row.policy_api_key ? new Secret(row.policy_api_key) : null,
    model: row.policy?.model ?? row.policy_model_name ?? null,
    requestModel: params.model ?? null,
    version: row.policy?.version ?? row.policy_version ?? null,
    sampling: samplingOf(params),
    own: isOwn ? own : null,
  };
}

function samplingOf(params: GymRow['responses_create_params']): Sampling {
  const { max_output_tokens: most } = params;
  const given = Object.keys(sampled).flatMap((key) => {
    const value = params[key];
    return value === undefined || value === null ? [] : [[key, value]];
  });
  return { ...Object.fromEntries(given), ...(most == null ? {} : { max_tokens: most }) };
}

export const instanceIdOf = (row: GymRow): string | null =>
  row.instance_id ?? row.responses_create_params.metadata?.instance_id ?? null;

export type RowInstance =
  | { instance: Instance }
  /** The row has only the id, so the instance must be known from another source. */
  | { id: string }
  | { problems: RowProblem[] };

/** Returns the instance of a row, or only its id, or the problems of the row. The operator sets `options`. */
export function instanceOf(row: GymRow, options: RowOptions = {}): RowInstance {
  const id = instanceIdOf(row);
  const carries = CARRIED.some((name) => row[name] !== undefined && row[name] !== null);
  const wrapped = row.responses_create_params.metadata?.instance_dict !== undefined;
  return carries || wrapped || id === null ? toInstance('row', row, options) : { id };
}

/** Columns that only rows of datasets have, so a row with one of them contains an instance. */
const CARRIED = [
  'problem_statement',
  'FAIL_TO_PASS',
  'fail_to_pass',
  'expected_output_json',
  'resolved_issues',
];
