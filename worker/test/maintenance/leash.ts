/** A proxy to Redis that passes a given number of commands and then none, as if the client was killed or stopped after them. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

type Line = { client: Socket; server: Socket; waiting: Buffer[] };

export async function startLeash(redisUrl: string) {
  const target = new URL(redisUrl);
  const lines = new Set<Line>();
  let left = Number.POSITIVE_INFINITY;
  let passed = 0;
  const tight = Promise.withResolvers<void>();
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    const line: Line = { client, server, waiting: [] };
    lines.add(line);
    server.pipe(client);
    let rest: Buffer = Buffer.alloc(0);
    client.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      for (let end = endOfCommand(rest); end !== null; end = endOfCommand(rest)) {
        const command = rest.subarray(0, end);
        rest = rest.subarray(end);
        if (left > 0) {
          left -= 1;
          passed += 1;
          server.write(command);
        } else {
          line.waiting.push(command);
          tight.resolve();
        }
      }
    });
    const close = (): void => {
      client.destroy();
      server.destroy();
      lines.delete(line);
    };
    for (const socket of [client, server]) socket.on('error', close).on('close', close);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(redisUrl);
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const cut = (): void => {
    listener.close();
    for (const { client, server } of lines) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    /** The address of the proxy. */
    url: url.href,
    /** Passes this many commands, over all connections, and holds back the rest. */
    after(commands: number): void {
      left = commands;
      passed = 0;
    },
    /** Number of commands that passed since the last call of `after`. */
    passed: () => passed,
    /** Resolves when a command is held back. */
    tight: tight.promise,
    /** Passes the commands held back, and all that follow. */
    release(): void {
      left = Number.POSITIVE_INFINITY;
      for (const { server, waiting } of lines) for (const command of waiting.splice(0)) server.write(command);
    },
    /** Drops the commands held back and closes the connections. */
    cut,
    async [Symbol.asyncDispose]() {
      cut();
    },
  };
}

/** The end of the first command (an array of strings) in the bytes of a client; null: incomplete. */
function endOfCommand(bytes: Buffer): number | null {
  const head = number(bytes, 0);
  if (!head) return null;
  let at = head.next;
  for (let part = 0; part < head.value; part++) {
    const length = number(bytes, at);
    if (!length) return null;
    at = length.next + length.value + 2;
  }
  return at <= bytes.length ? at : null;
}

/** The number after the mark (`*` or `$`) at this offset, and the end of its line. */
function number(bytes: Buffer, at: number): { value: number; next: number } | null {
  const end = bytes.indexOf('\r\n', at);
  return end === -1 ? null : { value: Number(bytes.toString('latin1', at + 1, end)), next: end + 2 };
}
