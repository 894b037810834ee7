import { once } from 'node:events';
import { createServer } from 'node:http';
import { Duplex } from 'node:stream';
import { poll } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { Listener } from '../runtime.ts';
import { forward } from './forwarder.ts';

const NEVER = new AbortController().signal;
const [OPEN, DATA, END, CREDIT, CLOSE] = [1, 2, 3, 4, 5];
const WINDOW_BYTES = 65_536;

function frame(kind: number, id: number, value: number, bytes: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUInt8(kind, 0);
  head.writeUInt32BE(id, 1);
  head.writeUInt32BE(value, 5);
  return Buffer.concat([head, bytes]);
}
const data = (id: number, bytes: Buffer): Buffer => frame(DATA, id, bytes.length, bytes);

/** A program that the test plays: `print` is its output, `read` what it has received. */
function program(isReading = true) {
  const received: Buffer[] = [];
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      received.push(chunk);
      if (isReading) done();
    },
  });
  return {
    open: async () => stream,
    print: (...parts: (string | Buffer)[]) =>
      stream.push(Buffer.concat(parts.map((part) => Buffer.from(part)))),
    end: () => stream.push(null),
    received: () => Buffer.concat(received),
    stream,
  };
}

async function open(onConnection: (socket: Duplex) => void, isReading = true) {
  const inside = program(isReading);
  inside.print('swefarm 4000\n');
  const listener: Listener = await forward(inside.open, onConnection, NEVER);
  return { inside, listener };
}

test('an HTTP server answers over frames that arrive byte by byte', async () => {
  const server = createServer(
    (request, response) => void request.on('end', () => response.end('answer')).resume(),
  );
  const { inside, listener } = await open((socket) => void server.emit('connection', socket));
  expect([listener.port, listener.by]).toEqual([4000, 'program']);
  const request = Buffer.from(
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nxx',
  );
  for (const byte of Buffer.concat([frame(OPEN, 7, 0), data(7, request)])) inside.print(Buffer.from([byte]));
  const isAnswered = () => inside.received().includes('answer') || null;
  expect(await poll(isAnswered, { pauseMs: 5, withinMs: 10_000 })).toBe(true);
  expect(inside.received().includes(frame(CREDIT, 7, request.length))).toBe(true);
  await listener[Symbol.asyncDispose]();
});

test.each([
  ['an unknown kind', [frame(9, 1, 0)]],
  ['a frame that is too long', [frame(DATA, 1, WINDOW_BYTES + 1)]],
  ['a number that is open', [frame(OPEN, 1, 0), frame(OPEN, 1, 0)]],
  ['more bytes than the window', [frame(OPEN, 1, 0), ...Array(9).fill(data(1, Buffer.alloc(16_384)))]],
  ['more credit than was used', [frame(OPEN, 1, 0), frame(CREDIT, 1, 1)]],
])('%s closes the listener', async (_what, frames) => {
  const closed: Promise<unknown>[] = [];
  const { inside, listener } = await open((socket) => void closed.push(once(socket, 'close')));
  inside.print(...frames);
  await Promise.all([listener.closed, ...closed]);
  expect(inside.stream.destroyed).toBe(true);
});

test('frames of unknown connections, and bytes after the end, harm no other connection', async () => {
  const sockets: Duplex[] = [];
  const { inside, listener } = await open((socket) => void sockets.push(socket.resume()));
  inside.print(data(5, Buffer.from('x')), frame(CLOSE, 6, 0), frame(OPEN, 1, 0), frame(END, 1, 0));
  inside.print(data(1, Buffer.from('x')), frame(OPEN, 2, 0), data(2, Buffer.from('y')));
  expect(await poll(() => sockets.length === 2 || null, { pauseMs: 5, withinMs: 5_000 })).toBe(true);
  expect(sockets[1]?.destroyed).toBe(false);
  await listener[Symbol.asyncDispose]();
});

test('connections beyond the most are refused', async () => {
  let opened = 0;
  const { inside, listener } = await open(() => void opened++);
  inside.print(...Array.from({ length: 300 }, (_, id) => frame(OPEN, id, 0)));
  const isRefused = () => inside.received().includes(frame(CLOSE, 299, 0)) || null;
  expect(await poll(isRefused, { pauseMs: 5, withinMs: 5_000 })).toBe(true);
  expect(opened).toBe(256);
  await listener[Symbol.asyncDispose]();
});

test('a program that reads nothing costs bounded memory', async () => {
  const { inside, listener } = await open((socket) => void socket.end(Buffer.alloc(WINDOW_BYTES)), false);
  let id = 0;
  const flood = setInterval(() => {
    for (let at = 0; at < 100; at++) inside.print(frame(OPEN, ++id, 0), frame(CLOSE, id, 0));
  }, 1);
  await listener.closed;
  clearInterval(flood);
  expect(inside.stream.writableLength).toBeLessThan(64 * 1024 * 1024);
});

test.each(['', 'swefarm none\n', 'sh: perl: broken\n'])(
  'a program that prints %j is a failure of the start',
  async (text) => {
    const inside = program();
    inside.print(text);
    inside.end();
    const message = expect.stringContaining('no working perl or python3');
    const expected = { failureClass: 'sandbox_start', message };
    await expect(forward(inside.open, () => undefined, NEVER)).rejects.toMatchObject(expected);
    expect(inside.stream.destroyed).toBe(true);
  },
);
