/** Before anything of a run with --require-tokens is queued: its endpoints are tried, and a run that cannot train is refused. */
import { type Farm, type PolicyKey, type RunRecord, UnusableError } from '@swefarm/shared';
import { probeTokens } from '../tokenprobe.ts';
import { say } from './terminal.ts';

/** Throws UnusableError `policy_tokens` with what breaks and its remedy. Does nothing for runs that need no tokens. */
export async function refuseUncontiguous(
  farm: Farm,
  { policy }: RunRecord,
  apiKey: PolicyKey | null,
  signal: AbortSignal,
): Promise<void> {
  if (!policy?.require_tokens) return;
  const [spoken] = policy.name === null ? [] : await farm.policies.get([policy.name]);
  if (spoken && spoken.state !== 'serving') {
    say(`swefarm: policy ${spoken.name} is ${spoken.state}: whether its tokens are contiguous is not tried`);
    return;
  }
  const urls = spoken && spoken.endpoints.length > 0 ? spoken.endpoints : policy.urls;
  const findings = await Promise.all(
    urls.map(async (url) => ({ url, found: await probeTokens(url, { config: policy, apiKey, signal }) })),
  );
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
