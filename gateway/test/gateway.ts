/** A gateway of its own for one test. */

import { testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { type Farm, type Instance, type ProducerConfig, Secret, silentLog } from '@swefarm/shared';
import { onTestFinished } from 'vitest';
import { readCallers } from '../src/access/callers.ts';
import { type Gateway, startGateway } from '../src/server.ts';

export const TOKEN = 'a-token-of-this-test';

export type TestGateway = { gateway: Gateway; url: string; farm: Farm; config: ProducerConfig };

/**
 * Listens on a free port; `bearer` is what a request must carry. `settings`: as `serve` is given them for all runs; `faulty`: the farm
 * as the gateway sees it; `instances`: its dataset.
 */
export async function testGateway(
  over: Partial<ProducerConfig> = {},
  settings: Record<string, unknown> = {},
  faulty: (farm: Farm) => Farm = (farm) => farm,
  instances: readonly Instance[] = [],
): Promise<TestGateway> {
  const config = { ...testConfig(), gateway_port: 0, gateway_token: new Secret(TOKEN), ...over };
  const farm = await testFarm(config);
  const deps = {
    farm: faulty(farm),
    config,
    log: silentLog(),
    signal: new AbortController().signal,
    settings,
    instances: new Map(instances.map((one) => [one.instance_id, one])),
  };
  const gateway = await startGateway(deps, { callers: readCallers(config) });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, url: gateway.url, farm, config };
}

export const bearer = (token = TOKEN): Record<string, string> => ({ authorization: `Bearer ${token}` });
