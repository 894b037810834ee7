/** Access to real registries without an engine: basic authentication, tokens, certificates of an own authority, and plain HTTP. */
import { createSign } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { makeCertificates, noDistribution, pushImage, startDistribution } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it } from 'vitest';
import { createFetch } from '../../src/images/fetch.ts';
import { openConnections } from '../../src/registry/connection.ts';
import { RegistrySource } from '../../src/registry/source.ts';
import { layerOf } from '../images/layer.ts';
import { describeUnless, errorOf, NEVER } from '../subject.ts';

const folder = temporaryFolder('access');
const ALL = { ca: null, plainHttp: [], blobsDir: null };

/** Writes a file as `docker login` does. */
function loginFile(address: string, entry: object): string {
  const path = join(folder, `${newId()}.json`);
  writeFileSync(path, JSON.stringify({ auths: { [address]: entry } }));
  return path;
}
const auth = (login: string) => ({ auth: Buffer.from(login).toString('base64') });

/** Reads an image and fetches its only layer; returns the bytes of the layer. */
async function pull(image: string, auths: string[] = [], settings: Partial<typeof ALL> | object = {}) {
  const fetch = createFetch({ atOnce: 1, mirrors: [], registryAuth: auths }, async () => undefined);
  await using source = new RegistrySource({ ...ALL, ...settings, fetch, folder: join(folder, newId()) });
  return await source.open(image, async ({ layers, layer }) => {
    const [only] = layers;
    return only ? statSync(await layer(only, join(folder, newId()))).size : 0;
  });
}

async function push(origin: string, headers: Record<string, string>): Promise<string> {
  const repository = `t/${newId().toLowerCase()}`;
  const tar = await layerOf([{ name: 'file', content: repository }]);
  await pushImage({ origin, repository, tag: 'v1', layers: [{ tar }], headers });
  return `${repository}:v1`;
}

/** A server of tokens, which signs them as its registry requires. */
async function startTokens(files: { cert: string; key: string }, users: Record<string, string>) {
  const requests: { method: string; authorization: string | undefined; form: string }[] = [];
  const chain = [readFileSync(files.cert, 'utf8').replace(/-----[^-]+-----|\s/g, '')];
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const sign = (scope: string): string => {
    const [type, name, actions = ''] = scope.split(':');
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: 'issuer',
      sub: 'farm',
      aud: 'registry',
      nbf: now - 5,
      iat: now,
      exp: now + 60,
    };
    const text = `${part({ typ: 'JWT', alg: 'RS256', x5c: chain })}.${part({ ...claims, access: [{ type, name, actions: actions.split(',') }] })}`;
    return `${text}.${createSign('RSA-SHA256').update(text).sign(readFileSync(files.key), 'base64url')}`;
  };
  const server = createServer(async (request, response) => {
    let form = '';
    for await (const chunk of request) form += chunk;
    const query =
      request.method === 'POST'
        ? new URLSearchParams(form)
        : new URL(request.url ?? '', 'http://x').searchParams;
    const { authorization } = request.headers;
    requests.push({ method: request.method ?? '', authorization, form });
    const login = Buffer.from(authorization?.replace('Basic ', '') ?? '', 'base64').toString();
    const isKnown = query.get('refresh_token') === users.identity || login === users.login;
    response.statusCode = isKnown ? 200 : 401;
    const body = isKnown
      ? { token: sign(query.get('scope') ?? '') }
      : { errors: [{ message: 'wrong password' }] };
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    realm: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    requests,
    sign,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describeUnless(noDistribution(), 'access to a registry without an engine', () => {
  it('sends the credentials of registry_auth, and reports missing and wrong ones', async () => {
    await using real = await startDistribution({ login: 'farm:se:cret' });
    const { auth: basic } = auth('farm:se:cret');
    const image = `${real.address}/${await push(`http://${real.address}`, { authorization: `Basic ${basic}` })}`;
    await expect(pull(image)).rejects.toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('registry_auth'),
    });
    const wrong = loginFile(real.address, auth('farm:wrong'));
    await expect(pull(image, [wrong])).rejects.toMatchObject({ failureClass: 'image_pull' });
    expect(await pull(image, [wrong, loginFile(`${real.address}/t`, auth('farm:se:cret'))])).toBeGreaterThan(
      0,
    );
    expect(
      await pull(image, [loginFile(real.address, { username: 'farm', password: 'se:cret' })]),
    ).toBeGreaterThan(0);
  });

  it('gets tokens by a password or by an identity token', async () => {
    const files = await makeCertificates(folder);
    await using tokens = await startTokens(files, { login: 'farm:secret', identity: 'identity' });
    await using real = await startDistribution({ token: { realm: tokens.realm, roots: files.ca } });
    const name = `t/${newId().toLowerCase()}`;
    const authorization = `Bearer ${tokens.sign(`repository:${name}:pull,push`)}`;
    const tar = await layerOf([{ name: 'file', content: name }]);
    await pushImage({
      ...{ origin: `http://${real.address}`, repository: name, tag: 'v1', layers: [{ tar }] },
      headers: { authorization },
    });
    const image = `${real.address}/${name}:v1`;
    await expect(pull(image)).rejects.toThrow(/wrong password/);
    expect(await pull(image, [loginFile(real.address, auth('farm:secret'))])).toBe(tar.length);
    expect(await pull(image, [loginFile(real.address, { identitytoken: 'identity' })])).toBe(tar.length);
    const posted = tokens.requests.filter(({ method }) => method === 'POST');
    expect(posted.map(({ form }) => new URLSearchParams(form).get('grant_type'))).toContain('refresh_token');
    expect(posted.every(({ authorization: sent }) => sent === undefined)).toBe(true);
  });

  it('accepts a certificate of registry_ca, and no other of an unknown authority', async () => {
    const files = await makeCertificates(temporaryFolder('authority'));
    await using real = await startDistribution({ tls: { cert: files.cert, key: files.key } });
    const address = real.address.replace('127.0.0.1', 'localhost');
    const refused = await errorOf(pull(`${address}/a/b:v1`));
    expect(refused).toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('certificate'),
    });
    // The registry is reached, and has no such image.
    await expect(pull(`${address}/a/b:v1`, [], { ca: files.ca })).rejects.toMatchObject({
      failureClass: 'image_not_found',
    });
    await expect(pull(`${address}/a/b:v1`, [], { ca: join(folder, 'none') })).rejects.toThrow(/registry_ca/);
  });

  it('speaks plain HTTP only to this machine and to registries of registry_http', async () => {
    await using none = openConnections(ALL);
    await using one = openConnections({ ...ALL, plainHttp: ['plain.example:5000'] });
    await using real = await startDistribution();
    expect(await none.origin(real.address, NEVER)).toBe(`http://${real.address}`);
    expect(await none.origin('plain.example:5000', NEVER)).toBe('https://plain.example:5000');
    expect(await one.origin('plain.example:5000', NEVER)).toBe('http://plain.example:5000');
    expect(await one.origin('plain.example', NEVER)).toBe('https://plain.example');
  });
});
