/** Registries and images that want what is not theirs: files of the host, other images, credentials, memory. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { expect, it } from 'vitest';
import type { Credentials } from '../../src/images/credentials.ts';
import { Repository } from '../../src/registry/client.ts';
import { openConnections } from '../../src/registry/connection.ts';
import { layerOf } from '../images/layer.ts';
import { NEVER } from '../subject.ts';
import { aNode, digestOf, startHostile } from './hostile.ts';

const large = (await layerOf([
  { name: 'large', content: randomBytes(1_100_000).toString('latin1') },
])) as Buffer;
const top = await layerOf([{ name: 'top', content: 'x' }]);

it.each(['sha256:x/../../../victim', 'sha256:/../victim', `sha256:${'A'.repeat(64)}`, ''])(
  'a layer of the digest "%s" is refused',
  async (diffId) => {
    const registry = await startHostile();
    const { name } = registry.image('bad', [large, top], [diffId, digestOf(top)]);
    const node = await aNode();
    await expect(node.treeOf(name)).rejects.toMatchObject({ failureClass: 'image_pull' });
    expect(readdirSync(`${node.store.root}/images`)).toEqual([]);
  },
);

it('an image that names the id of another image as its layer gets none of its files', async () => {
  const registry = await startHostile();
  const other = registry.image('private', [await layerOf([{ name: 'private', content: 'x' }])]);
  const bad = registry.image('bad', [large, top], [other.digest, digestOf(top)]);
  const node = await aNode();
  await node.treeOf(other.name);
  await expect(node.treeOf(bad.name)).rejects.toThrow(/a layer has digest/);
  expect(await node.store.find(other.digest)).not.toBeNull();
});

/** Reads a blob of a registry that answers 307 to `target`, or 401 with `challenge`. */
async function readBlob(headers: Record<string, string>, credentials: Credentials) {
  const { host } = await startHostile((_, response) => {
    response.writeHead(headers.location ? 307 : 401, headers).end();
    return true;
  });
  await using connections = openConnections({ ca: null, plainHttp: [host] });
  const reference = { registry: host, repository: 'a/b' };
  const repository = new Repository({ connections, reference, credentials, signal: NEVER });
  return await repository.blob(digestOf('x'), 0).then(
    async ({ body }) => (await buffer(body)).toString(),
    (error: Error) => error.message,
  );
}

it('the target of a redirect gets no credentials, whatever it requests', async () => {
  const received: string[] = [];
  const thief = await listening((request, response) => {
    received.push(`${request.method} ${request.headers.authorization ?? ''}`);
    response.end('{"token":"t"}');
  });
  const target = await listening((_, response) => {
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${thief}/token"` }).end();
  });
  const login = { serveraddress: 'x', username: 'me', password: 'secret' };
  expect(await readBlob({ location: `${target}/blob` }, login)).toContain('401');
  expect(received).toEqual([]);

  const tokens = await listening((_, response) => void response.writeHead(307, { location: thief }).end());
  const challenge = { 'www-authenticate': `Bearer realm="${tokens}/token"` };
  const refused = await readBlob(challenge, { serveraddress: 'x', identitytoken: 'refresh' });
  expect(refused).toContain('redirects a request with credentials');
  expect(received).toEqual([]);
});

it('an endless error is read up to a limit, and reported by its status', async () => {
  let sent = 0;
  const { host } = await startHostile((_, response) => {
    response.writeHead(403);
    const more = (): void => {
      while (!response.destroyed && sent < 2 ** 30) {
        sent += 65_536;
        if (!response.write(' '.repeat(65_536))) return void response.once('drain', more);
      }
    };
    more();
    return true;
  });
  const node = await aNode();
  await expect(node.treeOf(`${host}/a/b:v1`)).rejects.toThrow(/answered 403/);
  expect(sent).toBeLessThan(2 ** 26);
});
