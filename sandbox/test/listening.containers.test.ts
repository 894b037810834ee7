/** Workers that listen in containers: without root, after a crash, and in networks whose loopback is down. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlink, stat } from 'node:fs/promises';
import type { Server } from 'node:net';
import { createInterface } from 'node:readline';
import { readProcessStat } from '@swefarm/shared';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { dockerRuntime } from '../src/docker/runtime.ts';
import { Broker } from '../src/listening/broker.ts';
import { allPids } from '../src/namespaces/processes.ts';
import { run } from '../src/run.ts';
import { cannotBeAnother, runAsUser } from './other.ts';
import { describeUnless, importImage, NEVER, OPTIONS, spec } from './subject.ts';

const CHILD = new URL('./listening.child.ts', import.meta.url).pathname;
const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';
const isRoot = process.getuid?.() === 0;
let image: string;
beforeAll(async () => {
  image = await importImage(socketPath);
});

describeUnless(cannotBeAnother(CHILD), 'a worker of the group of Docker', () => {
  it('listens by a program inside', async () => {
    const { gid, mode } = await stat(socketPath);
    expect(mode & 0o060).toBe(0o060);
    expect(await runAsUser(CHILD, [socketPath, image], gid)).toMatchObject({ by: 'program', heard: 'heard' });
  });
});

const childrenOf = async (parent: number): Promise<number[]> =>
  (await allPids()).filter((pid) => readProcessStat(pid)?.parent === parent);

describeUnless(
  isRoot ? null : 'needs root, as entering a network of Docker does',
  'a worker that is killed',
  () => {
    it('leaves no process and no listening socket', async () => {
      const child = spawn(process.execPath, [CHILD, socketPath, image, 'stay'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const [line] = await once(createInterface(child.stdout), 'line');
      const { id, by, port, heard } = JSON.parse(line);
      await using runtime = await dockerRuntime({ socketPath });
      onTestFinished(() => runtime.remove(id));
      expect([by, heard]).toEqual(['worker', 'heard']);
      const helpers = await childrenOf(child.pid ?? 0);
      expect(helpers.length).toBe(1);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await expect.poll(() => helpers.filter((pid) => readProcessStat(pid))).toEqual([]);
      const { stdout } = await run('docker', [
        '-H',
        `unix://${socketPath}`,
        'exec',
        id,
        'cat',
        '/proc/net/tcp',
      ]);
      expect(stdout).not.toContain(`:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`);
    });

    it('is not delayed by a broken helper: the next request starts another one', async () => {
      using broker = new Broker();
      await expect(broker.listen(['--net=/proc/self/ns/none'], NEVER)).rejects.toThrow(/No such file/);
      const [helper] = (await childrenOf(process.pid))
        .filter((pid) => readProcessStat(pid)?.state !== 'Z')
        .slice(-1);
      const lost = broker.listen(['--net=/proc/self/ns/net', '--', 'sh', '-c', 'sleep 600'], NEVER);
      process.kill(helper ?? 0, 'SIGKILL');
      await expect(lost).rejects.toThrow('has ended');
      const server = await broker.listen(['--net=/proc/self/ns/net'], NEVER);
      server.close();
    });

    it('brings up a loopback that is down', async () => {
      const holder = spawn('unshare', ['--net', 'sleep', '600'], { stdio: 'ignore' });
      onTestFinished(() => void holder.kill('SIGKILL'));
      const path = `/proc/${holder.pid}/ns/net`;
      const own = await readlink('/proc/self/ns/net');
      await expect.poll(() => readlink(path)).not.toBe(own);
      using broker = new Broker();
      const server: Server = await broker.listen([`--net=${path}`], NEVER);
      server.on('connection', (socket) => socket.end('heard'));
      const port = (server.address() as { port: number }).port;
      const read = `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3`;
      const { stdout } = await run('nsenter', [`--net=${path}`, 'bash', '-c', read]);
      server.close();
      expect(stdout).toBe('heard');
    });
  },
);

it('a paused container keeps its port', async () => {
  await using runtime = await dockerRuntime({ socketPath });
  await using container = await runtime.start(spec(await runtime.ensureImage(image, NEVER)), NEVER);
  await using listener = await container.listen((socket) => socket.end('heard'), NEVER);
  const docker = (...line: string[]) => run('docker', ['-H', `unix://${socketPath}`, ...line]);
  await docker('pause', container.id);
  await docker('unpause', container.id);
  const program = `import socket; print(socket.create_connection(("127.0.0.1", ${listener.port})).recv(9).decode())`;
  expect((await container.exec(['python3', '-c', program], OPTIONS)).output.toString()).toBe('heard\n');
});
