/** Tries the policy endpoints of a run before the run is queued. */
import { probeEndpoints, probePictures, probeReachable } from '@swefarm/runs';
import {
  asksPolicy,
  effectiveSampling,
  type Farm,
  type Finding,
  type Instance,
  modelOfRun,
  type PolicyConfig,
  type PolicyKey,
  type RunRecord,
  UnusableError,
} from '@swefarm/shared';
import { printStatus } from './terminal.ts';

export type EndpointCheck = {
  record: RunRecord;
  /** Instances of the run. Their longest problem statement must fit into the context. */
  instances: readonly Instance[];
  apiKey: PolicyKey | null;
  acceptRawLogprobs: boolean;
  /** False with --no-probe: no endpoint is tried. */
  probes: boolean;
  signal: AbortSignal;
};

/**
 * Tries the endpoints. Throws UnusableError with the remedy: `policy_endpoint` when every endpoint fails, `policy_tokens` when token ids
 * are unusable for training, `policy_pictures` when an endpoint refuses pictures.
 */
export async function requireFitEndpoints(farm: Farm, trial: EndpointCheck): Promise<void> {
  const { policy: own } = trial.record;
  const shows = trial.instances.some(({ pictures = [] }) => pictures.length > 0);
  if (!own || !trial.probes) return;
  const [registered] = own.name === null ? [] : await farm.policies.get([own.name]);
  const policy = { ...own, model: modelOfRun(own, registered ?? null) };
  if (registered && registered.state !== 'serving') {
    printStatus(`swefarm: policy ${registered.name} is ${registered.state}: its endpoints are not tried`);
    return;
  }
  const urls = registered && registered.endpoints.length > 0 ? registered.endpoints : policy.urls;
  await requireReachable(urls, policy, trial);
  if (shows) await requirePictures(urls, policy, trial);
  if (policy.require_tokens) await requireTrainable(urls, policy, trial);
}

/** Throws when every endpoint fails. Otherwise prints a warning for each endpoint that fails or is overloaded. */
async function requireReachable(
  urls: readonly string[],
  modes: PolicyConfig,
  { apiKey, signal }: EndpointCheck,
): Promise<void> {
  const { model } = modes;
  const tried = await Promise.all(
    urls.map(async (url) => ({ url, ...(await probeReachable(url, { model, modes, apiKey, signal })) })),
  );
  signal.throwIfAborted();
  const lines = tried.filter(({ status }) => status !== 'ok').map((one) => described(one.url, one));
  if (lines.length > 0 && tried.every(({ status }) => status === 'fail'))
    throw new UnusableError(
      'policy_endpoint',
      ['no endpoint of this run responds:', ...lines, 'for endpoints that start later: --no-probe'].join(
        '\n  ',
      ),
    );
  for (const line of lines) printStatus(`swefarm: ${line}`);
}

async function requirePictures(
  urls: readonly string[],
  policy: PolicyConfig,
  { apiKey, signal }: EndpointCheck,
): Promise<void> {
  const options = { sampling: effectiveSampling(policy), apiKey, signal };
  for (const url of urls) {
    const found = await probePictures(url, policy.model, options);
    if (found.status === 'warn') printStatus(`swefarm: ${described(`${url}, pictures`, found)}`);
    if (found.status !== 'fail') continue;
    throw new UnusableError(
      'policy_pictures',
      `the instances of this run show pictures:\n  ${described(url, found)}`,
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
    // The requests of other agents are unknown, so tool calls are tried but not required.
    ...(asksPolicy(agent.type) && agent.type !== 'installed'
      ? { action: agent.action === 'tool' ? ('tool' as const) : ('fenced' as const) }
      : {}),
    contextLimit: agent.context_limit,
    sequenceBudget: agent.max_sequence_tokens,
    problem: longest(trial.instances),
  };
  const all = (await probeEndpoints(urls, options)).flatMap(({ url, found }) =>
    found.map((one) => ({ status: one.status, text: described(`${url}, ${one.subject}`, one) })),
  );
  for (const { status, text } of all) if (status === 'warn') printStatus(`swefarm: ${text}`);
  const lines = all.flatMap(({ status, text }) => (status === 'fail' ? `  ${text}` : []));
  if (lines.length === 0) return;
  throw new UnusableError(
    'policy_tokens',
    [`--require-tokens: this run could not be trained on (token mode ${policy.token_mode}):`, ...lines].join(
      '\n',
    ),
  );
}

const described = (where: string, { detail, remedy }: Pick<Finding, 'detail' | 'remedy'>): string =>
  `${where}: ${detail}\n    → ${remedy}`;

const longest = (instances: readonly Instance[]): string =>
  instances.reduce(
    (most, { problem_statement: one }) => (one.length > most.length ? one : most),
    'List the files.',
  );
