/**
 * `swefarm images convert` by a real Apptainer, from an engine and from an archive. A file is complete or absent, even after a
 * kill; its digest is checked, and the runtime starts it.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { newId } from '@swefarm/shared';
import { ensureDocker, importTree, runCommand } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inspectSifFiles } from '../../src/apptainer/inspect.ts';
import { apptainerRuntime } from '../../src/apptainer/runtime.ts';
import { bareTree } from '../../src/apptainer/tools.ts';
import { run } from '../../src/run.ts';
import { describeUnless, NEVER, noApptainer, OPTIONS, runtimeFolders, spec } from '../subject.ts';

const WORKER = resolve(import.meta.dirname, '../../../worker/bin/swefarm-worker.mjs');
const socketPath = '/var/run/docker.sock';
const folder = temporaryFolder('convert');
await chmod(folder, 0o755);
const short = `convert-${newId().toLowerCase()}`;
const name = `swefarm-test/${short}:latest`;
const sif = join(folder, 'sif', `${short}_latest.sif`);
const env = {
  SWEFARM_STATE_DIR: join(folder, 'state'),
  SWEFARM_APPTAINER_IMAGES: join(folder, 'sif/{image}.sif'),
};
const row = (image: string, id: string) => ({
  ...{ instance_id: id, repo: 'a/b', base_commit: '0'.repeat(40), version: '1', problem_statement: 'x' },
  ...{ test_patch: 'diff', FAIL_TO_PASS: ['a'], PASS_TO_PASS: [], family: 'custom', test_cmd: 'true' },
  ...{ log_parser: 'pytest', image },
});

type Line = { image: string; status: string; path?: string; bytes?: number; digest?: string; error?: string };

/** Exit code and lines of `swefarm images ACTION` for these images. */
async function images(action: string, names: readonly string[], more: readonly string[] = []) {
  const dataset = join(folder, `${newId()}.jsonl`);
  await writeFile(
    dataset,
    names.map((image, at) => `${JSON.stringify(row(image, `a__b-${at}`))}\n`).join(''),
  );
  const ended = await runCommand('swefarm', ['images', action, '--dataset', dataset, '--json', ...more], env);
  const lines = ended.stdout.split('\n').filter(Boolean);
  return { code: ended.code, stderr: ended.stderr, lines: lines.map((line): Line => JSON.parse(line)) };
}

describeUnless(noApptainer(), 'convert', () => {
  let engine: AsyncDisposable;
  beforeAll(async () => {
    engine = await ensureDocker({ socketPath });
    const tree = join(folder, 'tree');
    await bareTree(tree, '/bin/bash');
    await importTree(socketPath, tree, name);
  });
  afterAll(async () => {
    await run('docker', ['rmi', '--force', name]);
    await engine[Symbol.asyncDispose]();
  });

  it('after a kill no partial file appears, and the next run converts the image', async () => {
    // An Apptainer that writes a part and then hangs.
    const slow = join(folder, 'slow');
    const script = `#!/bin/bash
[ "$1" != --version ] || exit 0
head -c 1000 /dev/zero >"\${@: -2:1}"
echo $$ >${folder}/started.draft && mv ${folder}/started.draft ${folder}/started
exec sleep 600`;
    await writeFile(slow, script, { mode: 0o755 });
    const worker = spawn(process.execPath, [WORKER, 'images', 'convert'], {
      env: { ...process.env, ...env, SWEFARM_APPTAINER_COMMAND: slow },
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    worker.stdin.end(`${JSON.stringify({ image: name, instances: [] })}\n`);
    await expect.poll(() => existsSync(join(folder, 'started')), { timeout: 120_000 }).toBe(true);
    worker.kill('SIGKILL');
    process.kill(Number(await readFile(join(folder, 'started'), 'utf8')), 'SIGKILL');
    const left = await readdir(join(folder, 'sif'));
    expect(left.some((file) => file.endsWith('.partial'))).toBe(true);
    expect(await images('list', [name], ['--runtime', 'apptainer'])).toMatchObject({
      code: 10,
      lines: [{ image: name, status: 'absent', path: sif }],
    });

    // A lock without renewals expires, so the time of the last renewal is set to the past.
    await utimes(`${sif}.lock`, 1, 1);
    const made = await images('convert', [name]);
    expect(made, made.stderr).toMatchObject({
      code: 0,
      lines: [{ status: 'converted', path: sif, digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) }],
    });
    expect((await readdir(join(folder, 'sif'))).sort()).toEqual([
      basename(sif),
      `${basename(sif)}.origin.json`,
    ]);
    expect(await readdir(join(folder, 'state/images/converting'))).toEqual([]);
  });

  it('makes files that the runtime starts', async () => {
    const folders = await runtimeFolders('converted');
    await using runtime = await apptainerRuntime({ ...folders, templates: [env.SWEFARM_APPTAINER_IMAGES] });
    const image = await runtime.ensureImage(name, NEVER);
    await using container = await runtime.start(spec(image, { workdir: '/' }), NEVER);
    const result = await container.exec(['/bin/bash', '-c', 'echo it runs'], OPTIONS);
    expect(result.output.toString()).toBe('it runs\n');
  });

  it('checks files by their digests', async () => {
    const look = (verify: boolean) => inspectSifFiles([env.SWEFARM_APPTAINER_IMAGES]).look(name, verify, []);
    expect(await look(true)).toMatchObject({ status: 'present', path: sif });
    await using file = await open(sif, 'r+');
    const [{ size }, byte] = [await file.stat(), Buffer.alloc(1)];
    await file.read(byte, 0, 1, size - 1);
    await file.write(Buffer.from([(byte[0] ?? 0) ^ 1]), 0, 1, size - 1);
    expect(await look(false)).toMatchObject({ status: 'present' });
    expect(await look(true)).toMatchObject({ status: 'changed', error: expect.stringContaining(sif) });
  });

  it('converts archives without an engine, and reports each failure in one line', async () => {
    const archive = join(folder, 'saved.tar');
    await run('docker', ['save', '--output', archive, name]);
    const none = join(folder, 'none.tar');
    await mkdir(join(folder, 'other'));
    const { code, lines } = await images('convert', [
      ...[`docker-archive:${archive}`, `docker-archive:${none}`],
      // The second image would have the file name of the first, with other content.
      ...[name, `elsewhere/${short}:latest`],
    ]);
    expect(code).toBe(10);
    const of = (image: string) => lines.find((line) => line.image === image);
    expect(of(`docker-archive:${archive}`)).toMatchObject({ status: 'converted' });
    expect(of(`docker-archive:${none}`)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(none),
    });
    expect(of(name)).toMatchObject({ status: 'present' });
    expect(of(`elsewhere/${short}:latest`)?.error).toContain(sif);
    expect(lines.filter(({ error }) => error?.includes('\n'))).toEqual([]);
  });
});
