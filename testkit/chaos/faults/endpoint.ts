/** Faults of the policy endpoint: status 500, silence on open connections, bodies that end early, and an update of its weights. */
import { sleep } from '@swefarm/shared';
import type { Fault } from './fault.ts';

export const failEndpoint: Fault = async ({ farm }, { ms }) => {
  await farm.policy.setFault({ kind: 'server_error', probability: 0.6 });
  await sleep(ms);
  await farm.policy.setFault();
  return { what: `the endpoint answered 500 to most for ${ms / 1000} s`, affected: null };
};

export const hangEndpoint: Fault = async ({ farm }, { ms }) => {
  farm.proxy.pause();
  await sleep(ms);
  farm.proxy.resume();
  farm.proxy.cut();
  return { what: `the endpoint hung for ${ms / 1000} s, then reset every connection`, affected: null };
};

const CUT_EVERY_MS = 250;
/** A number of bytes that ends within the body of an answer. */
const CUT_AFTER_BYTES = 700;

export const cutEndpoint: Fault = async ({ farm }, { ms }) => {
  const until = performance.now() + ms;
  let cuts = 0;
  for (; performance.now() < until; cuts++) {
    farm.proxy.cutAfter(CUT_AFTER_BYTES);
    await sleep(CUT_EVERY_MS);
  }
  return { what: `answers were cut in the middle of their body, ${cuts} times`, affected: null };
};

let version = 1;

/** Updates the weights as a trainer does: announces the update, aborts running generations, refuses requests, and serves again. */
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
