/** A gateway for one test. */

import { testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { type Farm, type Instance, type ProducerConfig, Secret, silentLog } from '@swefarm/shared';
import { onTestFinished } from 'vitest';
import { readCallers } from '../src/access/callers.ts';
import { type Gateway, startGateway } from '../src/server.ts';

export const TOKEN = 'a-token-of-this-test';

export type TestGateway = { gateway: Gateway; url: string; farm: Farm; config: ProducerConfig };

/**
 * Starts a gateway on a free port. `bearer`: the authorization of requests; `settings`: settings of `serve`; `faulty`: wraps the
 * gateway's farm; `instances`: its dataset.
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
