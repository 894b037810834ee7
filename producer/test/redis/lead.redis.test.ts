/** Tests `swefarm redis`: there is one leader, the next leader has all data, and clients reconnect to it. */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Farm, loadConfig, openFarm, Secret } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { type LeadOptions, lead } from '../../src/redis/lead.ts';
import { takeLead } from '../../src/redis/lock.ts';

let folder = '';
beforeEach(async () => {
  folder = temporaryFolder('lead');
});

type Leader = {
  ready: Promise<{ epoch: number; port: number; restored: boolean }>;
  notes: string[];
  stop: () => void;
  ended: Promise<void>;
};

function start(name: string, options: Partial<LeadOptions> = {}): Leader {
  const ready = Promise.withResolvers<{ epoch: number; port: number; restored: boolean }>();
  const stop = new AbortController();
  const notes: string[] = [];
  const ended = lead({
    dir: join(folder, 'shared'),
    localDir: join(folder, name),
    host: '127.0.0.1',
    port: 0,
    prefix: '{swefarm}',
    node: name,
    job: null,
    standby: false,
    copySeconds: 3600,
    binDir: join(folder, 'bin'),
    onReady: ready.resolve,
    note: (text) => void notes.push(text),
    signal: stop.signal,
    ...options,
  });
  ended.catch(ready.reject);
  ready.promise.catch(() => undefined);
  return { ready: ready.promise, notes, stop: () => stop.abort(), ended };
}

const openFollower = (role: 'worker' | 'producer'): Promise<Farm> =>
  openFarm(
    loadConfig('producer', { flags: { redisUrl: `file:${join(folder, 'shared/address.json')}` }, env: {} }),
    role,
  );

test('the next leader continues on another node, and a follower finds it', async () => {
  const first = start('n1');
  expect(await first.ready).toMatchObject({ epoch: 1, restored: false });
  expect((await stat(join(folder, 'shared/address.json'))).mode & 0o077).toBe(0);
  await using worker = await openFollower('worker');
  await worker.secrets.put('kept', { secret: new Secret('value'), origins: [] }, 600);
  const second = start('n2', { standby: true });
  await expect.poll(() => second.notes, { timeout: 120_000 }).toEqual(['n1 leads; waiting until it ends']);
  first.stop();
  await first.ended;
  expect(await second.ready).toMatchObject({ epoch: 2, restored: true });
  // The client that was opened before the change of leader.
  expect((await worker.secrets.get('kept'))?.secret.reveal()).toBe('value');
  second.stop();
  await second.ended;
  expect(await readdir(folder)).toEqual(['shared']);
  expect(await readdir(join(folder, 'shared'))).not.toContain('address.json');
});

test('a second leader is refused while the first lives', async () => {
  const first = start('n1');
  await first.ready;
  await expect(start('n2').ended).rejects.toThrow(/n1 leads this farm already: join it with redis_url file:/);
  first.stop();
  await first.ended;
});

test('who is taken for dead is replaced, and steps down when it finds out', async () => {
  const first = start('n1', { copySeconds: 0 });
  const { port } = await first.ready;
  await expect.poll(() => readdir(join(folder, 'shared/copies')).catch(() => [])).not.toEqual([]);
  // Another node takes the lead, because with `staleMs` 1 it sees no renewal of the lead in time.
  const usurper = await takeLead({
    dir: join(folder, 'shared'),
    node: 'n2',
    job: '7',
    standby: false,
    staleMs: 1,
    signal: AbortSignal.timeout(120_000),
  });
  expect(usurper.epoch).toBe(2);
  await expect(first.ended).rejects.toMatchObject({ code: 'redis_fenced' });
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow('fetch failed');
  expect(await readdir(folder)).toEqual(['shared']);
});

test('its server is started again when it ends by itself', async () => {
  const first = start('n1');
  await first.ready;
  await using farm = await openFollower('worker');
  await farm.secrets.put('kept', { secret: new Secret('value'), origins: [] }, 600);
  await sleep(0);
  process.kill(JSON.parse(await readFile(join(folder, 'n1/server.json'), 'utf8')).pid, 'SIGTERM');
  await expect.poll(() => first.notes.join(), { timeout: 120_000 }).toMatch(/starting it again/);
  expect((await farm.secrets.get('kept'))?.secret.reveal()).toBe('value');
  first.stop();
  await first.ended;
});

test('the user of the farm sees its keys, and nothing of the server', async () => {
  const first = start('n1');
  await first.ready;
  await using farm = await openFollower('producer');
  expect(farm.warnings).toEqual([]);
  const client = farm.queue().opts.connection as unknown as { call(...words: string[]): Promise<unknown> };
  await expect(client.call('FLUSHALL')).rejects.toThrow(/NOPERM/);
  await expect(client.call('CONFIG', 'GET', 'dir')).rejects.toThrow(/NOPERM/);
  await expect(client.call('GET', 'another')).rejects.toThrow(/NOPERM/);
  first.stop();
  await first.ended;
});

test('what cannot work is said in a line', async () => {
  await mkdir(join(folder, 'shared'));
  await using taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  await expect(start('n1', { port }).ended).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken: give another`,
  );
  await writeFile(join(folder, 'file'), '');
  await expect(start('n1', { dir: join(folder, 'file') }).ended).rejects.toThrow(
    /give a folder that all nodes/,
  );
  await expect(start('n1', { host: '192.0.2.1' }).ended).rejects.toThrow(/no address of this host/);
  await expect(openFollower('producer')).rejects.toThrow(
    /no Redis runs for this farm: .* sbatch slurm\/workers\.sh/,
  );
});
