/** Sandboxes that wait ready for rollouts of the queue, on each runtime: like cold ones, handed over once, and never in the way. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Runtime } from '@swefarm/sandbox';
import { dockerRuntime, rootfsRuntime } from '@swefarm/sandbox';
import { newId, parseRolloutId, type Result } from '@swefarm/shared';
import { ensureDocker, type ScriptedPolicy, startScriptedPolicy, until } from '@swefarm/testkit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { takeCensus } from '../src/node/census.ts';
import { reap } from '../src/node/reaper.ts';
import { startWorkerProcess, type WorkerProcess } from './warmprocess.ts';
import {
  importAs,
  makeTree,
  observations,
  openFolder,
  openWarmScene,
  SOCKET,
  submitRun,
  type WarmGiven,
  type WarmScene,
} from './warmscene.ts';

/** All that code in a sandbox can see of it, but for what differs in each: its name, process ids, times. */
const LOOK = [
  'pwd; id -u; umask; ulimit -a; env | grep -v ^HOSTNAME= | sort',
  'ls -A . /tmp /; cat crate.txt stock.txt; ls answers',
  'git log --oneline --all | cut -d" " -f2-; git status --short; git cat-file --batch-all-objects --batch-check | wc -l',
  // Not beside `sort`, which would sometimes be seen.
  'all=$(for p in /proc/[0-9]*; do cat $p/comm; done 2>/dev/null); echo "$all" | sort',
  'cat /proc/self/status | grep -E "^(Cap|Seccomp|NoNewPrivs|Uid|Gid)"; cat /proc/net/dev | wc -l',
  'cat /sys/fs/cgroup/memory/memory.failcnt /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>&1',
  'echo mended >crate.txt; mkdir -p new; echo new >new/file.txt',
];

const images: Record<string, string> = {};
let folder: Awaited<ReturnType<typeof openFolder>>;
let looking: ScriptedPolicy;
/** Does one command, after which its rollout waits for a file that nobody makes. */
let hanging: ScriptedPolicy;
/** Answers after this whole file. */
let silent: ScriptedPolicy;

beforeAll(async () => {
  await ensureDocker({ socketPath: SOCKET });
  folder = await openFolder();
  const tree = await makeTree(folder.path, 'old');
  images.rootfs = `dir:${tree}`;
  images.docker = `swefarm-test/warm:${newId()}`;
  await importAs(tree, images.docker);
  const policy = (turns: object[]) =>
    startScriptedPolicy({ script: { conversations: [{ variants: [turns] }] } as never });
  looking = await policy([...LOOK.map((command) => ({ command })), { submit: true }]);
  hanging = await policy([{ command: 'while ! [ -e /never ]; do sleep 0.1; done' }, { submit: true }]);
  silent = await policy([{ delay_ms: 900_000, submit: true }]);
});
afterAll(async () => {
  for (const one of [looking, hanging, silent]) await one?.[Symbol.asyncDispose]();
  execFileSync('docker', ['rmi', '-f', images.docker ?? '']);
  await folder[Symbol.asyncDispose]();
});

const OPEN: Record<string, () => Promise<Runtime>> = {
  docker: () => dockerRuntime({ socketPath: SOCKET }),
  rootfs: () =>
    rootfsRuntime({ imagesDir: join(folder.path, 'images'), scratchDir: join(folder.path, 'scratch') }),
};

describe.each(['docker', 'rootfs'])('warm sandboxes on %s', (name) => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = (await OPEN[name]?.()) as Runtime;
  });
  afterAll(() => runtime[Symbol.asyncDispose]());

  const open = (given: Partial<WarmGiven> = {}): Promise<WarmScene> =>
    openWarmScene({ runtime, image: images[name] ?? '', policyUrl: looking.url, most: 1, ...given });
  const untilWaiting = (at: WarmScene, count = 1) =>
    until(async () => (await at.waiting()) === count, { what: `${count} wait` });
  const untilGone = (at: WarmScene) =>
    until(async () => (await at.owned()).length === 0, { what: 'no sandbox is left' });
  const judged = { outcome: 'judged', exit_status: 'submitted', attempt: 1, failure: null };

  test('a rollout in a warm sandbox sees what one in a cold sandbox sees, and leaves the same patch', async () => {
    const cold = await open({ most: 0 });
    const [first = ''] = await cold.submit({ rollouts: 1 });
    const coldly = await cold.attempt(first);
    expect(await cold.asked('miss')).toBe(0);

    const warm = await open();
    const [second = ''] = await warm.submit({ rollouts: 1 });
    await untilWaiting(warm);
    const warmly = await warm.attempt(second);
    expect([await warm.asked('hit'), await warm.asked('miss')]).toEqual([1, 0]);

    expect(coldly).toMatchObject(judged);
    expect(warmly).toMatchObject(judged);
    const plain = (text: string): string =>
      text.replaceAll(/(\.sf-|\.swefarm-)[0-9a-z]+|(SWEFARM_COMMAND=).*/g, '$1$2ID');
    const seen = await observations(warm, warmly);
    expect(plain(seen)).toBe(plain(await observations(cold, coldly)));
    expect(seen).toContain('DEPOT=north');
    expect(seen).toContain('full\n');
    expect(seen).not.toMatch(/^ten$|warm-/m);
    const patch = async (at: WarmScene, { artifact }: Result) =>
      artifact === null ? null : (await at.farm.artifacts.read(artifact))?.patch;
    expect(await patch(warm, warmly)).toMatch(/\+mended\n.*\+new\n/s);
    expect(await patch(warm, warmly)).toBe(await patch(cold, coldly));
  });

  test('of two rollouts that begin at once one gets the sandbox that waits; both are judged', async () => {
    const at = await open();
    const ids = await at.submit({ rollouts: 2 });
    await untilWaiting(at);
    const results = await Promise.all(ids.map(at.attempt));
    expect(results).toMatchObject([judged, judged]);
    // The second may have found one that was made meanwhile; nobody got one twice.
    expect((await at.asked('hit')) + (await at.asked('miss'))).toBe(2);
    expect(await at.asked('hit')).toBeGreaterThanOrEqual(1);
  });

  test('a rollout with other limits, or of another image, starts its own', async () => {
    const at = await open();
    await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    const [other = ''] = await at.submit({ rollouts: 1, memoryBytes: 300 * 1024 ** 2 });
    expect(await at.attempt(other)).toMatchObject(judged);
    expect([await at.asked('hit'), await at.asked('miss')]).toEqual([0, 1]);
    expect(await at.waiting()).toBe(1);
  });

  test('a sandbox that was ended from outside while it waited is noticed: the rollout starts its own and fails nothing', async () => {
    const at = await open();
    const [id = ''] = await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    // Nothing looks after it any more, so that the rollout is the first to ask for it.
    at.node.warm.close = () => undefined;
    await at.warming.end();
    const [{ id: sandbox } = { id: '' }] = await at.owned();
    await runtime.remove(sandbox);
    expect(await at.attempt(id)).toMatchObject(judged);
    expect([await at.asked('hit'), await at.asked('miss')]).toEqual([0, 1]);
    expect(await at.discarded('dead')).toBe(1);
  });

  test('one that ended while it waited is replaced', async () => {
    const at = await open();
    await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    const [{ id: sandbox } = { id: '' }] = await at.owned();
    await runtime.remove(sandbox);
    await until(async () => (await at.discarded('dead')) === 1);
    await untilWaiting(at);
    expect((await at.owned()).map(({ id }) => id)).not.toContain(sandbox);
  });

  test('what waits is removed while the worker claims nothing, and made again when it claims', async () => {
    const at = await open();
    await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    at.warming.setPaused(true);
    expect(await at.waiting()).toBe(0);
    await untilGone(at);
    expect(await at.discarded('paused')).toBe(1);
    at.warming.setPaused(false);
    await untilWaiting(at);
  });

  test('one that is being made when the worker ends, or claims nothing, is removed', async () => {
    const at = await open();
    await at.submit({ rollouts: 1 });
    for (const end of [async () => at.warming.setPaused(true), () => at.warming.end()]) {
      at.warming.setPaused(false);
      await until(() => at.node.warm.list().length === 1);
      await end();
      await until(() => at.node.warm.list().length === 0);
      // A start that was broken off is removed beside all else.
      await untilGone(at);
    }
    expect(await at.waiting()).toBe(0);
  });

  test('a sandbox that no rollout of the queue would take is removed, and one for the next rollout takes its place', async () => {
    const at = await open();
    const [id = ''] = await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    await at.farm.jobs.dropRun(parseRolloutId(id).runId);
    await until(async () => (await at.discarded('unwanted')) === 1);
    await untilGone(at);
    const [next = ''] = await at.submit({ rollouts: 1, memoryBytes: 300 * 1024 ** 2 });
    await untilWaiting(at);
    expect(await at.attempt(next)).toMatchObject(judged);
    expect(await at.asked('hit')).toBe(1);
  });

  test('the reaper and the census take what waits, and what was handed over, for a living worker’s own', async () => {
    const at = await open({ policyUrl: hanging.url });
    const [id = ''] = await at.submit({ rollouts: 2 });
    await untilWaiting(at);
    const asked = hanging.stats().answered;
    const attempt = at.attempt(id).catch(() => null);
    await until(() => hanging.stats().answered > asked);
    await untilWaiting(at);
    const look = async () => {
      const { active, warm, identity: self, farm, log } = at.node;
      const unused = new Map();
      const inUse = { list: () => [...active.list(), ...warm.list()] };
      // As the last sweep of an ending worker does, which spares nothing that is not in use.
      const reaped = await reap({
        ...{ runtime, self, registry: farm.registry, active: inUse, log, unused, ending: true },
      });
      await takeCensus(at.node);
      const { containers, leaked } = at.node.metrics;
      return [reaped, (await containers.get()).values[0]?.value, (await leaked.get()).values[0]?.value];
    };
    expect(await look()).toEqual([0, 2, 0]);
    at.node.active.abort(id, 'cancelled');
    await attempt;
  });

  test('a rollout that is cancelled in a warm sandbox leaves nothing, and nobody else gets its sandbox', async () => {
    const at = await open({ policyUrl: hanging.url });
    const [id = ''] = await at.submit({ rollouts: 1 });
    await untilWaiting(at);
    const [{ id: sandbox } = { id: '' }] = await at.owned();
    const asked = hanging.stats().answered;
    const attempt = at.attempt(id);
    await until(() => hanging.stats().answered > asked);
    expect(await at.asked('hit')).toBe(1);
    at.node.active.abort(id, 'cancelled');
    expect(await attempt).toMatchObject({ outcome: 'cancelled' });
    await until(async () => !(await at.owned()).some((one) => one.id === sandbox));
    await untilWaiting(at);
    await at.warming.end();
    await untilGone(at);
    expect(at.node.warm.list()).toEqual([]);
  });

  const startProcess = async (): Promise<WorkerProcess> => {
    const flags = ['--warm-sandboxes', '1', '--warm-idle-cpus', '0'];
    const worker = await startWorkerProcess({ runtime: name, folder: folder.path, flags });
    // The first rollout has the only slot for as long as the test goes on; the second is next.
    await submitRun(worker.farm, images[name] ?? '', silent.url, { rollouts: 2 });
    await until(async () => (await worker.metrics()).includes('\nswefarm_worker_warm_sandboxes 1\n'));
    const mine = async () =>
      (await runtime.listOwned()).filter(({ owner }) => owner.worker === worker.id).map(({ owner }) => owner);
    expect(await mine()).toHaveLength(2);
    return { ...worker, owners: mine };
  };

  test('a worker that is killed leaves sandboxes that the next one removes, the warm one too', async () => {
    const worker = await startProcess();
    worker.process.kill('SIGKILL');
    await worker.process.exit;
    const { identity: self, farm, log } = (await open({ most: 0 })).node;
    // The supervisors of its sandboxes end with it; what is left is the reaper's.
    const sweep = { runtime, self: { ...self, farm: worker.farm.id }, registry: farm.registry, log };
    await until(async () => {
      await reap({ ...sweep, active: { list: () => [] } });
      return (await worker.owners()).length === 0;
    });
  });

  test('a worker that is told to end removes what waits', async () => {
    const worker = await startProcess();
    worker.process.kill('SIGTERM');
    expect(await worker.process.exit).toBe(0);
    expect(await worker.owners()).toEqual([]);
  });
});

test('an image that was replaced under its name is never met in an old sandbox', async () => {
  const image = `swefarm-test/warm:${newId()}`;
  onTestFinished(() => void execFileSync('docker', ['rmi', '-f', image]));
  await importAs(await makeTree(folder.path, 'old'), image);
  await using runtime = await dockerRuntime({ socketPath: SOCKET });
  const at = await openWarmScene({ runtime, image, policyUrl: looking.url, most: 1 });
  const [id = ''] = await at.submit({ rollouts: 1 });
  await until(async () => (await at.waiting()) === 1);
  await importAs(await makeTree(folder.path, 'replaced'), `${image}-new`);
  onTestFinished(() => void execFileSync('docker', ['rmi', '-f', `${image}-new`]));
  execFileSync('docker', ['tag', `${image}-new`, image]);
  const seen = await observations(at, await at.attempt(id));
  expect(seen).toMatch(/^replaced$/m);
  expect(seen).not.toMatch(/^old$/m);
  await at.warming.end();
  await at.node.removals.finished();
});
