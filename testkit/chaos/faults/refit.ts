/** The trainer updates its weights: says so, breaks off what is being generated, refuses for a while, and serves the new ones. */
import { sleep } from '@swefarm/shared';
import type { Fault } from './fault.ts';

let version = 1;

export const refit: Fault = async ({ farm }, { ms }) => {
  await farm.gateway.putPolicy({ state: 'updating' });
  await farm.policy.setFault({ kind: 'aborted' });
  await sleep(ms / 2);
  await farm.policy.setFault({ kind: 'unavailable' });
  await sleep(ms / 2);
  version += 1;
  farm.policy.setVersion(`weights-${version}`);
  await farm.policy.setFault();
  await farm.gateway.putPolicy({ state: 'serving', version: `weights-${version}` });
  return { what: `the policy was updated to weights-${version} for ${ms / 1000} s`, affected: null };
};
