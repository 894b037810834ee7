/** Tries the endpoints of a run before it is queued: with --require-tokens, and where its instances show pictures. */
import {
  asksPolicy,
  effectiveSampling,
  type Farm,
  type Instance,
  type PolicyConfig,
  type PolicyKey,
  type RunRecord,
  UnusableError,
} from '@swefarm/shared';
import { probeEndpoints } from '../probe/endpoints.ts';
import { probePictures } from '../probe/pictureprobe.ts';
import { say } from './terminal.ts';

export type EndpointCheck = {
  record: RunRecord;
  /** The run's instances: the longest problem statement must fit. */
  instances: readonly Instance[];
  apiKey: PolicyKey | null;
  acceptRawLogprobs: boolean;
  signal: AbortSignal;
};

/**
 * Throws UnusableError with the failure and its remedy: `policy_tokens` where the run could not train, `policy_pictures` where an
 * endpoint refuses the pictures of its instances. Asks nothing for runs that need neither.
 */
export async function requireFitEndpoints(farm: Farm, trial: EndpointCheck): Promise<void> {
  const { policy } = trial.record;
  const shows = trial.instances.some(({ pictures = [] }) => pictures.length > 0);
  if (!policy || (!policy.require_tokens && !shows)) return;
  const [spoken] = policy.name === null ? [] : await farm.policies.get([policy.name]);
  if (spoken && spoken.state !== 'serving') {
    say(`swefarm: policy ${spoken.name} is ${spoken.state}: its endpoints are not tried`);
    return;
  }
  const urls = spoken && spoken.endpoints.length > 0 ? spoken.endpoints : policy.urls;
  if (shows) await requirePictures(urls, policy, trial);
  if (policy.require_tokens) await requireTrainable(urls, policy, trial);
}

async function requirePictures(
  urls: readonly string[],
  policy: PolicyConfig,
  { apiKey, signal }: EndpointCheck,
): Promise<void> {
  const options = { sampling: effectiveSampling(policy), apiKey, signal };
  for (const url of urls) {
    const { status, detail, remedy } = await probePictures(url, policy.model, options);
    if (status === 'warn') say(`swefarm: ${url}, pictures: ${detail}\n    → ${remedy}`);
    if (status !== 'fail') continue;
    throw new UnusableError(
      'policy_pictures',
      `the instances of this run show pictures:\n  ${url}: ${detail}\n    → ${remedy}`,
    );
  }
}

async function requireTrainable(
  urls: readonly string[],
  policy: PolicyConfig,
  trial: EndpointCheck,
): Promise<void> {
  const { agent } = trial.record;
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
