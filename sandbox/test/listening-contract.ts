/** Requirements of every runtime for ports inside a container: who reaches them, how much passes, and when they close. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { waitAtMost } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forward } from '../src/listening/forwarder.ts';
import type { Container, Listener } from '../src/runtime.ts';
import { type ContractOptions, describeIf, NEVER, OPTIONS, type Subject, sh, start } from './subject.ts';

const BODY_BYTES = 10_000_000;
const CLOSED_MS = 30_000;

/** Answers with the number of bytes of the request, and as many bytes as its path asks for. */
const echo = createServer(async (request, response) => {
  const { length } = await text(request);
  response.end(`${length} ${'y'.repeat(Number(request.url?.slice(1)))}`);
});
const answer = (socket: Duplex): void => void echo.emit('connection', socket);

type Way = (container: Container, onConnection?: typeof answer) => Promise<Listener>;
const byListen: Way = (container, onConnection = answer) => container.listen(onConnection, NEVER);
const byForward: Way = (container, onConnection = answer) =>
  forward((argv, signal) => container.open(argv, signal), onConnection, NEVER);

/** Runs a Python program in the container with `get(bytes to send, bytes to ask for)`, and returns its output. */
async function python(container: Container, port: number, program: string): Promise<string> {
  const head = `import os, socket, threading, urllib.request
def get(send, ask):
    request = urllib.request.Request("http://127.0.0.1:${port}/%d" % ask, data=b"x" * send)
    return urllib.request.urlopen(request, timeout=60).read().decode()
`;
  const { output } = await container.exec(['python3', '-c', head + program], OPTIONS);
  return output.toString().trim();
}

const REFUSED = 'Connection refused';
const isRefused = async (container: Container, port: number): Promise<boolean> =>
  (await python(container, port, 'get(0, 0)')).includes(REFUSED);

/** Returns the error code of a connection of this process; null if it is accepted. */
async function errorFromHere(port: number): Promise<string | null> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  } finally {
    socket.destroy();
  }
}

export function listeningContract(subject: () => Subject, options: ContractOptions): void {
  let container: Container;
  beforeAll(async () => {
    container = await start(subject());
  });
  afterAll(() => container[Symbol.asyncDispose]());

  describe.each([
    ['by the runtime', byListen],
    ['by a program inside', byForward],
  ])('%s', (_how, listen) => {
    it('is reached at 127.0.0.1 from inside, by every user, and closes', async () => {
      const listener = await listen(container);
      expect(await python(container, listener.port, 'print(get(3, 2))')).toBe('3 yy');
      if (options.isolated)
        expect(await python(container, listener.port, 'os.setuid(4321); print(get(1, 0))')).toBe('1');
      await listener[Symbol.asyncDispose]();
      await listener[Symbol.asyncDispose]();
      await listener.closed;
      expect(await isRefused(container, listener.port)).toBe(true);
    });

    it('passes large bodies in both directions', async () => {
      await using listener = await listen(container);
      const program = `print(len(get(${BODY_BYTES}, ${BODY_BYTES})))`;
      expect(await python(container, listener.port, program)).toBe(`${BODY_BYTES + '10000000 '.length}`);
    });

    it('passes 64 connections side by side', async () => {
      const sockets = new Set<unknown>();
      await using listener = await listen(container, (socket) => {
        sockets.add(socket);
        answer(socket);
      });
      const program = `all_open = threading.Barrier(64)
def work(number):
    one = socket.create_connection(("127.0.0.1", ${listener.port}))
    all_open.wait()
    one.sendall(b"POST /%d HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\ncontent-length: 1\\r\\n\\r\\nx" % number)
    got = b""
    while True:
        part = one.recv(65536)
        if not part: break
        got += part
    if got.count(b"y") == number: done.append(number)
done = []
threads = [threading.Thread(target=work, args=(1000 + n,)) for n in range(64)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(done))`;
      expect(await python(container, listener.port, program)).toBe('64');
      expect(sockets.size).toBe(64);
    });

    it('two ports are separate', async () => {
      await using one = await listen(container);
      await using two = await listen(container, (socket) => socket.end('two'));
      expect(one.port).not.toBe(two.port);
      const program = `print(get(1, 0) + socket.create_connection(("127.0.0.1", ${two.port})).recv(9).decode())`;
      expect(await python(container, one.port, program)).toBe('1 two');
      await two[Symbol.asyncDispose]();
      expect(await python(container, one.port, 'print(get(1, 0))')).toBe('1');
    });

    it('a client that leaves ends its connection', async () => {
      const accepted = Promise.withResolvers<Duplex>();
      await using listener = await listen(container, accepted.resolve);
      const running = python(
        container,
        listener.port,
        `socket.create_connection(("127.0.0.1", ${listener.port}))`,
      );
      const socket = (await accepted.promise).resume();
      await once(socket, 'end');
      await running;
    });

    it('ends with the container', async () => {
      const other = await start(subject());
      const accepted = Promise.withResolvers<Duplex>();
      const listener = await listen(other, accepted.resolve);
      const line = [
        'python3',
        '-c',
        `import socket, time; s = socket.create_connection(("127.0.0.1", ${listener.port})); time.sleep(600)`,
      ];
      const command = other.exec(line, OPTIONS).catch(() => null);
      const closed = once(
        (await accepted.promise).on('error', () => undefined),
        'close',
      );
      await other[Symbol.asyncDispose]();
      await Promise.all([listener.closed, closed, command]);
      await expect(other.listen(answer, NEVER)).rejects.toMatchObject({ failureClass: 'sandbox_lost' });
    });
  });

  it('a killed program inside ends its connections, and the listener reports it', async () => {
    const accepted = Promise.withResolvers<Duplex>();
    await using other = await start(subject());
    await using listener = await byForward(other, accepted.resolve);
    const command = python(
      other,
      listener.port,
      'try: get(1, 1)\nexcept Exception as e: print(type(e).__name__)',
    );
    const closed = once(
      (await accepted.promise).on('error', () => undefined),
      'close',
    );
    await other.killProcesses();
    expect((await waitAtMost(Promise.all([listener.closed, closed]), CLOSED_MS)).by).toBe('itself');
    await command;
    expect(await isRefused(other, listener.port)).toBe(true);
    expect(await other.state()).toBe('running');
  });

  describeIf(options.isolated, 'from outside', () => {
    it('neither this machine nor another container reaches the port', async () => {
      await using listener = await byListen(container);
      expect(listener.by).toBe('worker');
      await using sibling = await start(subject());
      expect(await errorFromHere(listener.port)).toBe('ECONNREFUSED');
      expect(await isRefused(sibling, listener.port)).toBe(true);
      expect(await python(container, listener.port, 'print(get(1, 0))')).toBe('1');
    });

    it('the container still has no network', async () => {
      await using _listener = await byListen(container);
      expect((await sh(container, 'grep -vc "lo:" /proc/net/dev')).output.toString().trim()).toBe('2');
    });
  });

  it('an aborted start leaves nothing', async () => {
    const abort = new AbortController();
    const opening = container.listen(answer, abort.signal);
    abort.abort(new Error('left'));
    await expect(opening).rejects.toThrow('left');
    await using listener = await byListen(container);
    expect(await python(container, listener.port, 'print(get(1, 0))')).toBe('1');
  });
}
