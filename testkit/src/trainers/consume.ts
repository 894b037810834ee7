/**
 * Applies the rules of NeMo RL to an answer to `/run` (nemo_rl/environments/nemo_gym.py,
 * nemo_rl/experience/rollouts.py): which samples it accepts, which it masks, and what it raises.
 */

export type Consumed = {
  /** Null: the trainer trains on this sample. Else the error that it raises. */
  raises:
    | 'infrastructure'
    | 'data'
    | 'non-contiguous'
    | 'no trainable item'
    | 'bad log-probabilities'
    | 'integer reward'
    | null;
  masked: boolean;
  reward: number | null;
  trainedTurns: number;
  failureClass: string | null;
};

type Item = { prompt_token_ids?: number[]; generation_token_ids?: number[]; generation_log_probs?: number[] };
type Body = {
  responses_create_params: { input: unknown[] };
  response: { output: Item[] };
  reward: number;
  instance_config: { mask_sample: boolean };
  _ng_failure_class?: string;
};

export function consume(status: number, text: string): Consumed {
  const nothing = { masked: false, reward: null, trainedTurns: 0, failureClass: null };
  if (status !== 200) {
    const infrastructure = status >= 500 || status === 408 || status === 429;
    return { ...nothing, raises: infrastructure ? 'infrastructure' : 'data' };
  }
  const body = JSON.parse(text) as Body;
  const sample = {
    masked: body.instance_config.mask_sample === true,
    reward: body.reward,
    failureClass: body._ng_failure_class ?? null,
    trainedTurns: body.response.output.filter((item) => item.generation_token_ids?.length).length,
  };
  // Python parses `1` as an integer, and NeMo RL's advantages raise on a batch of integers.
  if (!/"reward":-?\d+\.\d/.test(text)) return { ...sample, raises: 'integer reward' };
  if (!Array.isArray(body.responses_create_params.input)) return { ...sample, raises: 'data' };
  return { ...sample, raises: flawOf(body.response.output) };
}

/** Each prompt must begin with all earlier tokens; the tokens that it adds and the generated ones make the sample. */
function flawOf(output: readonly Item[]): Consumed['raises'] {
  let seen: number[] = [];
  let trained = 0;
  for (const item of output) {
    const {
      prompt_token_ids: prompt = [],
      generation_token_ids: generation = [],
      generation_log_probs: logs,
    } = item;
    if (generation.length === 0) continue;
    if (seen.some((id, at) => prompt[at] !== id)) return 'non-contiguous';
    // NeMo RL silently accepts a list that is too short, so the farm must not send one.
    if (logs?.length !== generation.length || !logs.every(Number.isFinite)) return 'bad log-probabilities';
    seen = [...prompt, ...generation];
    trained += 1;
  }
  return trained === 0 ? 'no trainable item' : null;
}
