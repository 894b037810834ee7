/** `swefarm init`: by flags, and by answers on a terminal. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RUN_FLAGS, runSettings } from '@swefarm/runs';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { BIN, exited, run } from './cli.ts';

const POLICY = ['--policy-url', 'http://localhost:8000/v1', '--model', 'my-model'];
const settingsOf = (configFile: string) => runSettings({ flags: {}, configFile });

test('flags become settings of the file, and the file explains every setting', async () => {
  const output = join(temporaryFolder(), 'run.yaml');
  const flags = [
    ...POLICY,
    '--group-size',
    '4',
    '--temperature',
    '0.5',
    '--require-tokens',
    '--agent',
    'codex',
  ];
  const ran = await run(['init', '--output', output, ...flags]);
  expect(ran).toMatchObject(exited(0, `next: swefarm rollout --dataset rows.jsonl --run-config ${output}`));
  expect(settingsOf(output)).toEqual({
    group_size: 4,
    agent: { type: 'codex' },
    policy: {
      ...{ urls: ['http://localhost:8000/v1'], model: 'my-model', require_tokens: true },
      sampling: { temperature: 0.5 },
    },
  });
  const text = await readFile(output, 'utf8');
  for (const { help } of RUN_FLAGS) expect(text).toContain(`# ${help}`);
  // Each comment that shows a default becomes a setting when its mark is removed.
  await writeFile(output, text.replaceAll(/^#( *)(step_limit|min_p|cpus|sandbox):/gm, '$1$2:'));
  expect(settingsOf(output)).toMatchObject({ agent: { type: 'codex', step_limit: 250 }, sandbox: {} });
});

test('a file is replaced with --force only, and invalid settings are refused', async () => {
  const output = join(temporaryFolder(), 'run.yaml');
  await writeFile(output, 'mine');
  expect(await run(['init', '--output', output, ...POLICY])).toMatchObject(
    exited(2, 'replace it with --force'),
  );
  expect(await run(['init', '--output', output, '--force'])).toMatchObject(exited(2, 'add --policy-url URL'));
  const negative = ['--agent', 'golden', '--group-size', '-1'];
  expect(await run(['init', '--output', output, '--force', ...negative])).toMatchObject(
    exited(2, '--group-size'),
  );
  expect(await readFile(output, 'utf8')).toBe('mine');
  expect((await run(['init', '--output', output, '--force', ...POLICY])).code).toBe(0);
  expect(settingsOf(output)).toMatchObject({ policy: { model: 'my-model' } });
});

test('on a terminal the command asks, and asks again after a wrong answer', async () => {
  const output = join(temporaryFolder(), 'run.yaml');
  const command = `${process.execPath} ${BIN} init --output ${output} --policy-url http://localhost:8000/v1`;
  const terminal = spawn('script', ['-qec', command, '/dev/null']);
  let shown = '';
  terminal.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  const answers: [question: RegExp, answer: string][] = [
    [/Agent .*\[mini\]: /, ''],
    [/Name of the model/, 'my-model'],
    [/Rollouts of each instance \[1\]: /, 'many'],
    [/expected a number(?:.|\s)*Rollouts of each instance/, '8'],
  ];
  const ended = new Promise((resolve) => terminal.once('close', resolve));
  for (const [question, answer] of answers) {
    await expect.poll(() => shown).toMatch(question);
    terminal.stdin.write(`${answer}\r`);
  }
  expect(await ended).toBe(0);
  expect(shown).not.toContain('endpoint [');
  expect(settingsOf(output)).toEqual({
    ...{ group_size: 8, agent: { type: 'mini' } },
    policy: { urls: ['http://localhost:8000/v1'], model: 'my-model' },
  });
});
