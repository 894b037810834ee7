import { connect, createServer, type Server, type Socket } from 'node:net';
import { sleep } from '@swefarm/shared';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startFaultProxy } from '../src/index.ts';
import { listen } from '../src/listen.ts';

/** A server that echoes its input. */
let echo: Server;
let target: number;
beforeAll(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) =>
    socket.on('error', () => socket.destroy()).pipe(socket),
  );
  target = await listen(echo);
});
afterAll(() => echo.close());

function client(port: number) {
  const socket: Socket = connect(port, '127.0.0.1');
  let received = '';
  let ended: string | null = null;
  socket.on('data', (data) => {
    received += data;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    ended = error.code ?? error.message;
  });
  socket.on('close', () => {
    ended ??= 'closed';
  });
  return { socket, received: () => received, ended: () => ended };
}

it('passes data both ways, in order, and large pieces whole', async () => {
  await using proxy = await startFaultProxy({ target });
  const one = client(proxy.port);
  const large = 'x'.repeat(3_000_000);
  one.socket.write('first ');
  one.socket.end(large);
  await expect.poll(() => one.received().length).toBe(6 + large.length);
  expect(one.received().slice(0, 8)).toBe('first xx');
  await expect.poll(one.ended).toBe('closed');
  expect(proxy.connections).toBe(0);
});

it('delays all data while paused, and loses none', async () => {
  await using proxy = await startFaultProxy({ target });
  const before = client(proxy.port);
  before.socket.write('a');
  await expect.poll(before.received).toBe('a');
  proxy.pause();
  const during = client(proxy.port);
  before.socket.write('b');
  during.socket.write('c');
  await sleep(100);
  expect([before.received(), during.received()]).toEqual(['a', '']);
  proxy.resume();
  await expect.poll(() => [before.received(), during.received()]).toEqual(['ab', 'c']);
});

it('cuts open connections and accepts new ones', async () => {
  await using proxy = await startFaultProxy({ target });
  const one = client(proxy.port);
  one.socket.write('a');
  await expect.poll(one.received).toBe('a');
  proxy.cut();
  await expect.poll(one.ended).toBe('ECONNRESET');
  const two = client(proxy.port);
  two.socket.write('b');
  await expect.poll(two.received).toBe('b');
  expect(proxy.accepted).toBe(2);
});

it('cuts in the middle of an answer', async () => {
  await using proxy = await startFaultProxy({ target });
  const one = client(proxy.port);
  proxy.cutAfter(4);
  one.socket.write('abcdefgh');
  await expect.poll(one.ended).not.toBeNull();
  expect('abcd'.startsWith(one.received())).toBe(true);
});

it('delays data by the latency in each direction', async () => {
  await using proxy = await startFaultProxy({ target });
  proxy.setLatency(60);
  const one = client(proxy.port);
  const since = performance.now();
  one.socket.write('a');
  await expect.poll(one.received, { interval: 5 }).toBe('a');
  expect(performance.now() - since).toBeGreaterThan(110);
});

it('refuses, and accepts again on the same port', async () => {
  await using proxy = await startFaultProxy({ target: `redis://127.0.0.1:${target}/3` });
  expect(proxy.url).toBe(`redis://127.0.0.1:${proxy.port}/3`);
  await proxy.refuse();
  const refused = client(proxy.port);
  await expect.poll(refused.ended).toBe('ECONNREFUSED');
  await proxy.accept();
  const one = client(proxy.port);
  one.socket.write('a');
  await expect.poll(one.received).toBe('a');
});
