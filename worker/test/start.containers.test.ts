/** A worker that starts without its container engine, or with a full disk, waits, logs the wait once, and continues or exits with 12. */
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { ensureDocker, type Started, startCommand } from '@swefarm/testkit';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { redisUrl } from './maintenance/farm.ts';

let engine: string;
beforeAll(async () => {
  engine = (await ensureDocker()).socketPath;
});

function startWorker(folder: string, patience: number, runtime = 'docker'): Started {
  const flags = ['--runtime', runtime, '--docker-socket', join(folder, 'engine.sock'), '--concurrency', '1'];
  const line = ['run', ...flags, '--engine-patience-seconds', String(patience)];
  const worker = startCommand('swefarm-worker', line, {
    ...{ SWEFARM_REDIS_URL: redisUrl(), SWEFARM_REDIS_PREFIX: `away-${newId()}` },
    ...{ SWEFARM_STATE_DIR: join(folder, 'state'), SWEFARM_SCRATCH_DIR: join(folder, 'scratch') },
    SWEFARM_IMAGES_DIR: join(folder, 'images'),
  });
  onTestFinished(() => worker.kill('SIGKILL'));
  return worker;
}

const WAITS = /runtime not usable yet: waiting/;

/** The machine's engine at another socket; the first `refused` lists of containers break off, as those of a stopping engine do. */
async function engineAt(socketPath: string, refused: number): Promise<{ listed(): number }> {
  let listed = 0;
  await listening((question, answer) => {
    if (question.url?.includes('/containers/json') && listed++ < refused)
      return void question.socket.destroy();
    const { method, url: path, headers } = question;
    const passed = request({ socketPath: engine, method, path, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    question.pipe(passed);
  }, socketPath);
  return { listed: () => listed };
}

test('a worker waits for its engine, also after a second outage, and logs each wait once', async () => {
  const folder = temporaryFolder('away');
  const worker = startWorker(folder, 600);
  await worker.until(WAITS);
  const { listed } = await engineAt(join(folder, 'engine.sock'), 2);
  await worker.until(/"msg":"ready"/);
  expect(listed()).toBeGreaterThanOrEqual(3);
  const output = worker.stdout() + worker.stderr();
  // The worker waits once to choose a runtime, and once to list the sandboxes of dead workers.
  expect(output.match(new RegExp(WAITS, 'g'))).toHaveLength(2);
  worker.kill('SIGTERM');
  expect(await worker.exit).toBe(0);
});

test('without an engine the exit code is 12; a worker stopped meanwhile exits with 0', async () => {
  const folder = temporaryFolder('away');
  const impatient = startWorker(folder, 1);
  const patient = startWorker(folder, 600);
  expect(await impatient.exit).toBe(12);
  const why = /no usable runtime: docker: no engine socket at .*engine\.sock: start Docker/;
  expect(impatient.stderr()).toMatch(why);
  expect((impatient.stdout() + impatient.stderr()).match(new RegExp(WAITS, 'g'))).toHaveLength(1);
  await patient.until(WAITS);
  patient.kill('SIGTERM');
  expect(await patient.exit).toBe(0);
});

test('a worker waits for a full disk, and its tries leave nothing behind', async () => {
  const folder = temporaryFolder('away');
  const scratch = join(folder, 'scratch');
  await mkdir(scratch, { mode: 0o755 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0755', 'swefarm-test', scratch]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', scratch]));
  const { bavail, bsize } = await statfs(scratch);
  await writeFile(join(scratch, 'filler'), Buffer.alloc(bavail * bsize)).catch(() => undefined);
  const worker = startWorker(folder, 600, 'rootfs');
  await worker.until(WAITS);
  await rm(join(scratch, 'filler'));
  await worker.until(/"msg":"ready"/);
  worker.kill('SIGTERM');
  expect(await worker.exit).toBe(0);
  expect(await readdir(scratch)).toEqual([]);
});
