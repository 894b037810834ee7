/** Gym's launcher and client read the gateway's entries by these rules, and the docs page shows the same entries. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Address, globalConfig } from './globalconfig.ts';

type Tree = Record<string, unknown>;
const AT: Address = { host: 'farm:TOKEN@farm-host', port: 8080 };

const page = readFileSync(new URL('../../../../docs/nemo-gym.md', import.meta.url), 'utf8');
const documented = parse(/```yaml\n(swe_farm:[\s\S]*?)```/.exec(page)?.[1] ?? '') as Tree;

/** Returns the server of an entry as nemo_gym/cli/env.py finds it: under the first key of the first key, whatever their names. */
function firstServer(entry: unknown): Tree | null {
  let inner = entry;
  for (let depth = 0; depth < 2; depth++) {
    if (inner === null || typeof inner !== 'object') return null;
    [inner] = Object.values(inner);
  }
  return inner !== null && typeof inner === 'object' ? (inner as Tree) : null;
}

const { head_server, ...served } = globalConfig(['swe_farm'], AT);

describe('entries in the configuration of Gym', () => {
  it('are on the page as the gateway serves them', () => {
    expect(documented).toEqual(served);
    expect(head_server).toEqual(AT);
  });

  it.each(['swe_farm', 'swe_farm_environment_server'])('Gym posts to %s and does not start it', (name) => {
    const server = firstServer(documented[name]);
    expect(server).toMatchObject(AT);
    expect(server).not.toHaveProperty('entrypoint');
  });

  it('the environment server names an existing agent', () => {
    const reference = firstServer(documented.swe_farm_environment_server)?.agent_server as Tree;
    const { type, name } = reference as { type: string; name: string };
    expect((documented[name] as Tree)[type]).toHaveProperty(name);
  });

  it('each caller with its own entry gets both blocks', () => {
    const { head_server: _head, ...two } = globalConfig(['a', 'b'], AT);
    expect(Object.keys(two)).toEqual(['a', 'a_environment_server', 'b', 'b_environment_server']);
  });
});
