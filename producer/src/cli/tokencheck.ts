/** Tries the endpoints of a run with --require-tokens before it is queued, and refuses a run that could not train. */
import {
  asksPolicy,
  type Farm,
  type Instance,
  type PolicyKey,
  type RunRecord,
  UnusableError,
} from '@swefarm/shared';
import { probeEndpoints } from '../probe/endpoints.ts';
import { say } from './terminal.ts';

export type TokenCheck = {
  record: RunRecord;
  /** The run's instances: the longest problem statement must fit. */
  instances: readonly Instance[];
  apiKey: PolicyKey | null;
  acceptRawLogprobs: boolean;
  signal: AbortSignal;
};

/** Throws UnusableError `policy_tokens` with the failure and its remedy. Does nothing for runs that need no tokens. */
export async function requireTrainableEndpoints(farm: Farm, trial: TokenCheck): Promise<void> {
  const { policy, agent } = trial.record;
  if (!policy?.require_tokens) return;
  const [spoken] = policy.name === null ? [] : await farm.policies.get([policy.name]);
  if (spoken && spoken.state !== 'serving') {
    say(`swefarm: policy ${spoken.name} is ${spoken.state}: whether its tokens are contiguous is not tried`);
    return;
  }
  const urls = spoken && spoken.endpoints.length > 0 ? spoken.endpoints : policy.urls;
  const { apiKey, signal, acceptRawLogprobs } = trial;
  const options = {
    config: policy,
    apiKey,
    signal,
    acceptRawLogprobs,
    // It is unknown how an external agent asks: tools are tried but not required.
    ...(asksPolicy(agent.type) ? { action: agent.action } : {}),
    contextLimit: agent.context_limit,
    sequenceBudget: agent.max_sequence_tokens,
    problem: longest(trial.instances),
  };
  const findings = await probeEndpoints(urls, options);
  for (const { url, found } of findings)
    for (const { status, subject, detail, remedy } of found)
      if (status === 'warn') say(`swefarm: ${url}, ${subject}: ${detail}\n    → ${remedy}`);
  const lines = findings.flatMap(({ url, found }) =>
    found
      .filter(({ status }) => status === 'fail')
      .map(({ subject, detail, remedy }) => `  ${url}, ${subject}: ${detail}\n    → ${remedy}`),
  );
  if (lines.length === 0) return;
  throw new UnusableError(
    'policy_tokens',
    [`--require-tokens: this run could not be trained on (token mode ${policy.token_mode}):`, ...lines].join(
      '\n',
    ),
  );
}

const longest = (instances: readonly Instance[]): string =>
  instances.reduce(
    (most, { problem_statement: one }) => (one.length > most.length ? one : most),
    'List the files.',
  );
