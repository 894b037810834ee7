/** A gateway of its own for one test. */
import { type Farm, type ProducerConfig, Secret, silentLog } from '@swefarm/shared';
import { onTestFinished } from 'vitest';
import { readCallers } from '../../src/gateway/access/callers.ts';
import { type Gateway, startGateway } from '../../src/gateway/server.ts';
import { testConfig, testFarm } from '../farm.ts';

export const TOKEN = 'a-token-of-this-test';

export type TestGateway = { gateway: Gateway; url: string; farm: Farm; config: ProducerConfig };

/**
 * Listens on a free port; `bearer` is what a request must carry. `settings`: as `serve` is given them for all runs; `faulty`: the farm
 * as the gateway sees it.
 */
export async function testGateway(
  over: Partial<ProducerConfig> = {},
  settings: Record<string, unknown> = {},
  faulty: (farm: Farm) => Farm = (farm) => farm,
): Promise<TestGateway> {
  const config = { ...testConfig(), gateway_port: 0, gateway_token: new Secret(TOKEN), ...over };
  const farm = await testFarm(config);
  const deps = {
    farm: faulty(farm),
    config,
    log: silentLog(),
    signal: new AbortController().signal,
    settings,
  };
  const gateway = await startGateway(deps, { callers: readCallers(config) });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, url: gateway.url, farm, config };
}

export const bearer = (token = TOKEN): Record<string, string> => ({ authorization: `Bearer ${token}` });
