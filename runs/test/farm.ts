/** Opens a farm with its own key prefix for one test, and makes instances and run records. */

import type { Instance } from '@swefarm/shared';
import { type Farm, loadConfig, newId, openFarm, type ProducerConfig, type RunRecord } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { onTestFinished } from 'vitest';
import { newRunRecord } from '../src/record.ts';

export const redisUrl = (): string => {
  const url = process.env.SWEFARM_TEST_REDIS_URL;
  if (!url) throw new Error('the redis project of vitest sets SWEFARM_TEST_REDIS_URL');
  return url;
};

export function testConfig(url = redisUrl(), prefix = `t${newId()}`): ProducerConfig {
  return loadConfig('producer', { env: {}, flags: { redisUrl: url, redisPrefix: prefix } });
}

export async function testFarm(config = testConfig()): Promise<Farm> {
  const farm = await openFarm(config, 'producer');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  return farm;
}

export async function testFolder(): Promise<string> {
  const path = temporaryFolder('producer');
  return path;
}

export function instances(count: number): Instance[] {
  return Array.from({ length: count }, (_, at) => ({
    instance_id: `a__b-${at}`,
    repo: 'a/b',
    base_commit: 'c',
    problem_statement: 'p',
    hints_text: '',
    version: '1',
    patch: 'gold',
    test_patch: '',
    FAIL_TO_PASS: ['t'],
    PASS_TO_PASS: [],
    family: 'custom',
    image: 'x:1',
    needs_egress: false,
  }));
}

export function testRecord(
  all: readonly Instance[],
  groupSize: number,
  flags: Record<string, unknown> = {},
): RunRecord {
  const dataset = { path: '/d.jsonl', sha256: 'aa', instances: [...all] };
  return newRunRecord({ dataset, flags: { agent: 'noop', groupSize: String(groupSize), ...flags } }, false);
}
