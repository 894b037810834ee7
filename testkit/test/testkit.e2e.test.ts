/** Tests the command `swefarm-testkit` as a process. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { words } from '../src/launchers/commands.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const bin = fileURLToPath(new URL('../bin/swefarm-testkit.mjs', import.meta.url));
const folder = temporaryFolder('testkit');

it('prints its URL first, answers, and ends on TERM', async () => {
  const script = join(folder, 's.yaml');
  const urlFile = join(folder, 'url');
  writeFileSync(script, 'conversations:\n  - variants: [[{text: hello}]]\n');
  const args = words`policy --script ${script} --template strips-thinking --delay-ms 1 --url-file ${urlFile}`;
  const child = spawn(bin, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  const url = String(line).trim();
  expect(readFileSync(urlFile, 'utf8').trim()).toBe(url);
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
  const answer = await (await fetch(`${url}/chat/completions`, { method: 'POST', body })).json();
  expect(answer).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it.each([
  [['policy'], /--script/],
  [['policy', '--script', '/nowhere.yaml'], /nowhere\.yaml/],
  [['policy', '--script', 'x', '--port', 'many'], /--port many: expected a number/],
  [['policy', '--script', 'x', '--tokens', 'maybe'], /--tokens maybe: expected on or off/],
  [['policy', '--what'], /--what/],
  [['dance'], /swefarm-testkit policy/],
])('%j is a usage error', (args, expected) => {
  const { status, stderr } = spawnSync(bin, args, { encoding: 'utf8' });
  expect(stderr).toMatch(expected);
  expect(status).toBe(2);
});

it('generates a script that the server accepts', () => {
  const output = join(folder, 'long.json');
  spawnSync(bin, ['generate', '--turns', '5', '--tokens', '3000', '--output', output]);
  expect(JSON.parse(readFileSync(output, 'utf8')).conversations[0].variants[0]).toHaveLength(5);
});
