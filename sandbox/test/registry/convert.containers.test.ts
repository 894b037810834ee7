/** `swefarm images` without an engine: from a real registry with a password to .sif files and to sandboxes of rootfs. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { newId } from '@swefarm/shared';
import { noDistribution, pushImage, runCommand, startDistribution } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apptainerRuntime } from '../../src/apptainer/runtime.ts';
import { bareTree } from '../../src/apptainer/tools.ts';
import { openImageStore } from '../../src/images/store.ts';
import { inspectUnpacked } from '../../src/rootfs/inspect.ts';
import { rootfsRuntime } from '../../src/rootfs/runtime.ts';
import { describeUnless, NEVER, noApptainer, OPTIONS, runtimeFolders, spec } from '../subject.ts';

const folder = temporaryFolder('fromregistry');
await chmod(folder, 0o755);
const LOGIN = 'farm:secret';
const row = (image: string, id: string) => ({
  ...{ instance_id: id, repo: 'a/b', base_commit: '0'.repeat(40), version: '1', problem_statement: 'x' },
  ...{ test_patch: 'diff', FAIL_TO_PASS: ['a'], PASS_TO_PASS: [], family: 'custom', test_cmd: 'true' },
  ...{ log_parser: 'pytest', image },
});

describeUnless(noDistribution(), 'images without an engine', () => {
  let registry: Awaited<ReturnType<typeof startDistribution>>;
  let images: string[];
  let dataset: string;
  const authFile = join(folder, 'auth.json');
  const sif = join(folder, 'sif/{image}.sif');
  const env = {
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_REGISTRY_AUTH: authFile,
    SWEFARM_APPTAINER_IMAGES: sif,
    // No engine answers there.
    SWEFARM_DOCKER_SOCKET: join(folder, 'none.sock'),
    SWEFARM_PODMAN_SOCKET: join(folder, 'none.sock'),
  };
  const command = async (action: string, more: readonly string[]) => {
    const ended = await runCommand(
      'swefarm',
      ['images', action, '--dataset', dataset, '--json', ...more],
      env,
    );
    const lines = ended.stdout.split('\n').filter(Boolean);
    return { code: ended.code, stderr: ended.stderr, lines: lines.map((line) => JSON.parse(line)) };
  };

  beforeAll(async () => {
    registry = await startDistribution({ login: LOGIN });
    const auth = Buffer.from(LOGIN).toString('base64');
    writeFileSync(authFile, JSON.stringify({ auths: { [registry.address]: { auth } } }));
    const tree = join(folder, 'tree');
    await bareTree(tree, '/bin/bash');
    writeFileSync(join(tree, 'noise'), randomBytes(2 * 1024 ** 2));
    const pack = ['-C', tree, '--numeric-owner', '--owner=0', '--group=0', '-cf', '-', '.'];
    const tar = spawnSync('tar', pack, { maxBuffer: 2 ** 30 }).stdout;
    const base = { tar, blob: gzipSync(tar, { level: 1 }), compression: 'gzip' as const };
    images = [];
    for (const at of [1, 2]) {
      const repository = `t/${newId().toLowerCase()}`;
      const own = spawnSync('tar', ['-C', '/etc', '-cf', '-', 'hostname']).stdout;
      const push = {
        origin: `http://${registry.address}`,
        repository,
        tag: 'v1',
        layers: [base, { tar: own }],
      };
      await pushImage({
        ...push,
        config: { Env: [`IMAGE=${at}`] },
        headers: { authorization: `Basic ${auth}` },
      });
      images.push(`${registry.address}/${repository}:v1`);
    }
    dataset = join(folder, 'rows.jsonl');
    writeFileSync(
      dataset,
      images.map((image, at) => `${JSON.stringify(row(image, `a__b-${at}`))}\n`).join(''),
    );
  });
  afterAll(() => registry[Symbol.asyncDispose]());

  it('are pulled once for rootfs, verified and listed, and start', async () => {
    const rootfs = ['--runtime', 'rootfs'];
    expect(await command('list', rootfs)).toMatchObject({
      code: 10,
      lines: [{ status: 'absent' }, { status: 'absent' }],
    });
    const pulled = await command('pull', rootfs);
    expect(pulled, pulled.stderr).toMatchObject({
      code: 0,
      lines: [{ status: 'pulled' }, { status: 'pulled' }],
    });
    expect(await command('pull', rootfs)).toMatchObject({
      code: 0,
      lines: [{ status: 'present' }, { status: 'present' }],
    });
    expect(await command('verify', rootfs)).toMatchObject({
      code: 0,
      lines: [{ status: 'present' }, { status: 'present' }],
    });
    await using runtime = await rootfsRuntime({
      imagesDir: join(env.SWEFARM_STATE_DIR, 'images'),
      scratchDir: env.SWEFARM_SCRATCH_DIR,
    });
    const image = await runtime.ensureImage(images[0] ?? '', NEVER);
    await using container = await runtime.start(spec(image, { workdir: '/' }), NEVER);
    const { output } = await container.exec(['/bin/bash', '-c', 'echo $IMAGE'], OPTIONS);
    expect(output.toString()).toBe('1\n');
  });

  it('are reported as changed after a write to their files, and pruned with what they share', async () => {
    const store = await openImageStore(join(env.SWEFARM_STATE_DIR, 'images'));
    const lowers = inspectUnpacked(store, []);
    const [one = '', two = ''] = images;
    const { path = '', digest = '' } = await lowers.look(one, true, []);
    appendFileSync(join(path, 'noise'), 'x');
    // Both images have links to the file.
    const verified = await command('verify', ['--runtime', 'rootfs']);
    expect(verified.code).toBe(10);
    expect(verified.lines.map(({ status }) => status)).toEqual(['changed', 'changed']);
    expect(verified.lines.find(({ image }) => image === one)?.error).toContain(path);
    expect((await lowers.prune(new Set([one]))).map(({ status }) => status)).toEqual(['kept']);
    // All images appear unused for a long time.
    for (const one of await store.list())
      utimesSync(join(store.root, 'images', one.digest.replace(':', '-'), 'used'), 0, 0);
    expect(await lowers.prune(new Set([one]))).toMatchObject([{ image: two, status: 'removed' }]);
    expect((await store.list()).map(({ shared }) => shared).sort()).toEqual([false, true]);
    for (const one of await store.list())
      utimesSync(join(store.root, 'images', one.digest.replace(':', '-'), 'used'), 0, 0);
    expect(await lowers.prune(new Set())).toMatchObject([{ image: one, digest, status: 'removed' }]);
    expect(await store.list()).toEqual([]);
  });

  it('are converted to .sif files that Apptainer starts', async ({ skip }) => {
    const why = noApptainer();
    if (why !== null) skip(why);
    const made = await command('convert', []);
    expect(made, made.stderr).toMatchObject({
      code: 0,
      lines: [{ status: 'converted' }, { status: 'converted' }],
    });
    expect(readdirSync(join(env.SWEFARM_STATE_DIR, 'images/converting'))).toEqual([]);
    expect(await command('verify', ['--runtime', 'apptainer'])).toMatchObject({ code: 0 });
    const folders = await runtimeFolders('converted');
    await using runtime = await apptainerRuntime({ ...folders, templates: [sif] });
    const image = await runtime.ensureImage(images[1] ?? '', NEVER);
    await using container = await runtime.start(spec(image, { workdir: '/' }), NEVER);
    const { output } = await container.exec(['/bin/bash', '-c', 'echo $IMAGE'], OPTIONS);
    expect(output.toString()).toBe('2\n');
  });
});
