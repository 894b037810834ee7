/** A gateway for one test. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testConfig, testFarm, testFolder } from '@swefarm/runs/test/farm.ts';
import { type Farm, type Instance, type ProducerConfig, Secret, silentLog } from '@swefarm/shared';
import { startRedis } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { readCallers } from '../src/access/callers.ts';
import { type Gateway, startGateway } from '../src/server.ts';

export const TOKEN = 'a-token-of-this-test';

export type TestGateway = { gateway: Gateway; url: string; farm: Farm; config: ProducerConfig };

/**
 * Starts a gateway on a free port. `over`: configuration that replaces the default; `settings`: settings of `serve`; `faulty`: wraps the
 * gateway's farm; `instances`: the dataset of the gateway.
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

/** Sends a JSON request. `after`: the header retry-after; `body`: null for an empty answer. */
export async function ask(url: string, method: string, body?: object, token = TOKEN) {
  const headers = { ...bearer(token), ...(body ? { 'content-type': 'application/json' } : {}) };
  const reply = await fetch(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  const text = await reply.text();
  const after = reply.headers.get('retry-after');
  return { status: reply.status, after, body: text === '' ? null : JSON.parse(text) };
}

/** Writes a callers file and returns its path. `entries`: fields of each caller by name; the token of NAME is `token-of-NAME`. */
export async function callersFile(entries: Record<string, string>): Promise<string> {
  const path = join(await testFolder(), 'callers.yaml');
  const lines = Object.entries(entries).map(([name, fields]) => {
    return `  - {name: ${name}, token_file: ${path}.${name}, ${fields}}\n`;
  });
  for (const name of Object.keys(entries)) await writeFile(`${path}.${name}`, `token-of-${name}`);
  await writeFile(path, `callers:\n${lines.join('')}`);
  return path;
}

/** Starts a gateway over a Redis of its own. `keys`: keys that the gateway's Redis user can use; `allow` changes the user's rules. */
export async function gatewayWithUser(keys: (prefix: string) => string[] = () => ['~*']) {
  const server = await startRedis();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const allow = (...rules: string[]) => server.cli('ACL', 'SETUSER', 'gw', ...rules);
  const { redis_prefix } = testConfig();
  await allow('on', '>gw-password', '+@all', ...keys(redis_prefix));
  const made = await testGateway({
    redis_url: new Secret(server.url),
    redis_prefix,
    redis_username: 'gw',
    redis_password: new Secret('gw-password'),
  });
  return { ...made, allow };
}
