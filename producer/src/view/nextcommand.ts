/** Chooses the command that a user types after `swefarm doctor`. */
import type { Finding } from '@swefarm/shared';

type Checked = {
  /** Address of Redis from the command line; undefined: from the environment, or none. */
  redisUrl: string | undefined;
  /** Whether a farm was checked. */
  hasFarm: boolean;
  policyUrls: readonly string[];
  model: string | undefined;
};

const SECRET = /:\/\/[^/\s]*@/;

/** Returns the words of the next command; null when a check failed, because the problem must be solved first. */
export function nextCommand(findings: readonly Finding[], of: Checked): string[] | null {
  if (findings.some(({ status }) => status === 'fail')) return null;
  const { redisUrl, hasFarm, policyUrls, model = 'MODEL' } = of;
  const policy = policyUrls.flatMap((url) => ['--policy-url', url]);
  const agent = policy.length === 0 ? ['--agent', 'golden'] : [...policy, '--model', model];
  const shownUrl = redisUrl !== undefined && SECRET.test(redisUrl) ? 'REDIS_URL' : redisUrl;
  const farm = shownUrl === undefined ? [] : ['--redis-url', shownUrl];
  return [
    hasFarm ? 'submit' : 'rollout',
    ...farm,
    '--dataset',
    'rows.jsonl',
    ...agent,
    '--output',
    'results.jsonl',
  ];
}
