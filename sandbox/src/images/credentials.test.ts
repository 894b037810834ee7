import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it } from 'vitest';
import { checkRegistryAuth, credentialsFor } from './credentials.ts';

const folder = temporaryFolder('credentials');

const auth = (user: string) => ({ auth: Buffer.from(`${user}:se:cret`).toString('base64') });
function file(name: string, auths: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ auths }));
  return path;
}

it.each([
  ['django/x:1', 'hub'],
  ['index.docker.io/django/x:1', 'hub'],
  ['registry-1.docker.io/django/x:1', 'hub'],
  ['index.docker.io.example/x', null],
  ['registry.example/a', 'all'],
  ['registry.example/farm/a@sha256:0', 'farm'],
  ['registry.example/farmer/a', 'all'],
  ['registry.example:5000/a', null],
  ['ghcr.io/a/b', null],
])('%s is requested as %s', async (image, user) => {
  const one = file('one.json', {
    'https://index.docker.io/v1/': auth('hub'),
    'registry.example/farm': auth('farm'),
  });
  const two = file('two.json', { 'https://registry.example': auth('all'), 'ghcr.io': {} });
  const found = credentialsFor(image, [one, two]);
  expect(found).toEqual(user && expect.objectContaining({ username: user, password: 'se:cret' }));
});

it('tokens, and separate names and passwords, are used unchanged', async () => {
  const path = file('forms.json', {
    'a.example': { identitytoken: 't' },
    'b.example': { username: 'u', password: 'p' },
  });
  expect(credentialsFor('a.example/x', [path])).toEqual({
    serveraddress: 'a.example',
    identitytoken: 't',
  });
  expect(credentialsFor('b.example/x', [path])).toMatchObject({ username: 'u', password: 'p' });
});

it('a changed secret is read again', async () => {
  const path = file('turned.json', { 'a.example': auth('old') });
  credentialsFor('a.example/x', [path]);
  file('turned.json', { 'a.example': auth('new') });
  expect(credentialsFor('a.example/x', [path])).toMatchObject({ username: 'new' });
});

it('a missing or invalid file throws an error with its path', () => {
  expect(() => checkRegistryAuth([join(folder, 'none.json')])).toThrow(/registry_auth: .*none.json.*ENOENT/);
  const path = join(folder, 'list.json');
  writeFileSync(path, '{"auths": []}');
  expect(() => checkRegistryAuth([path])).toThrow(/list.json is no file of docker login/);
});
