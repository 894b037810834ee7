/** Tests the signals and exit codes of slurm/train.sh with a stand-in for workers.sh: there is no cluster. */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../src/launchers/run.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const SCRIPT = resolve(import.meta.dirname, '../../slurm/train.sh');

/** A farm whose gateway is ready at once, and which runs until its job ends it. */
const FARM = `cd "$SWEFARM_SLURM_DIR/gateway"
sleep 0.1
echo '{"url":"http://127.0.0.1:9"}' >address.json
trap 'exit 0' TERM
while :; do sleep 0.1; done
`;

/**
 * Runs a command of Bash by train.sh. Returns what the command printed.
 * @param workers the stand-in for workers.sh
 * @param programs scripts by the name of the program that they replace
 */
async function train(workers: string, command: string, programs: Record<string, string> = {}) {
  const folder = temporaryFolder('train');
  const [bundle, bin, farm] = ['bundle/slurm', 'bin', 'farm'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [bundle, bin, join(farm, 'gateway')]) await mkdir(path, { recursive: true });
  await copyFile(SCRIPT, join(bundle, 'train.sh'));
  await writeFile(join(bundle, 'workers.sh'), workers);
  for (const [name, text] of Object.entries({ scontrol: 'exit 1', ...programs }))
    await writeFile(join(bin, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  const settings = join(folder, 'farm.env');
  await writeFile(settings, '');
  const output = join(folder, 'output');
  const env = { PATH: `${bin}:/usr/bin:/bin`, SLURM_JOB_ID: '7', SWEFARM_SLURM_DIR: farm, OUTPUT: output };
  const words = [join(bundle, 'train.sh'), settings, 'bash', '-c', command];
  const { code, stderr } = await run('bash', words, { env, timeout: 60_000, killSignal: 'SIGKILL' }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    (error: { code: number; stderr: string }) => error,
  );
  const printed = await readFile(output, 'utf8').catch(() => '');
  const left = (await readdir(join(farm, 'gateway'))).filter((name) => name.startsWith('.train'));
  return { code, stderr, printed, left };
}

test('train.sh sends its command one SIGTERM, and returns its exit code', async () => {
  const command = `
trap 'echo term >>"$OUTPUT"; got=1' TERM
kill -TERM $PPID
until [ -n "$got" ]; do sleep 0.05; done
kill -TERM $PPID
for _ in 1 2 3 4 5; do sleep 0.2; done
exit 3`;
  expect(await train(FARM, command)).toMatchObject({ code: 3, printed: 'term\n', left: [] });
});

test('a SIGTERM while the farm becomes ready ends the job before the command', async () => {
  // train.sh calls cat when the gateway is ready. The signal is handled after this call.
  const cat = 'kill -TERM "$(<"$OUTPUT.pid")"';
  const ended = await train(`echo $PPID >"$OUTPUT.pid"; ${FARM}`, 'echo ran >"$OUTPUT"', { cat });
  expect(ended).toMatchObject({ code: 143, printed: '', left: [] });
});

test('a farm that ends with 0 before its gateway is ready fails the job', async () => {
  const ended = await train('exit 0', 'echo ran >"$OUTPUT"');
  expect(ended).toMatchObject({ code: 12, printed: '', left: [] });
  expect(ended.stderr).toContain('the command did not run');
});
