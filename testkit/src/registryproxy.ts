/** An HTTP proxy in front of a registry that counts what it forwards and injects faults into its answers. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { listen } from './listen.ts';

/**
 * `status`: answers this status. `cutAfter`: closes the connection after so many bytes of the body. `flip`: changes a byte of the body.
 * `noRange`: ignores ranges. `delayMs`: waits before each piece of the body.
 */
export type RegistryProxyFault = {
  of: 'manifests' | 'blobs';
  status?: number;
  headers?: Record<string, string>;
  cutAfter?: number;
  flip?: boolean;
  noRange?: boolean;
  delayMs?: number;
};

export type RegistryProxy = AsyncDisposable & {
  /** `127.0.0.1:PORT` */
  readonly address: string;
  /** `METHOD PATH` of each request, with its range. */
  readonly requests: string[];
  /** Bytes of bodies sent to clients. */
  readonly bytes: number;
  /** Injects a fault into the next `times` matching requests. */
  fault(fault: RegistryProxyFault, times?: number): void;
};

/** @param target `127.0.0.1:PORT` of the registry */
export async function startRegistryProxy(target: string): Promise<RegistryProxy> {
  const faults: { fault: RegistryProxyFault; left: number }[] = [];
  const requests: string[] = [];
  let bytes = 0;
  const take = (url: string, method: string): RegistryProxyFault | null => {
    if (method !== 'GET') return null;
    const found = faults.find(({ fault, left }) => left > 0 && url.includes(`/${fault.of}/`));
    if (!found) return null;
    found.left--;
    return found.fault;
  };
  const forward = async (
    answer: IncomingMessage,
    response: ServerResponse,
    fault: RegistryProxyFault | null,
  ): Promise<void> => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    let sent = 0;
    for await (const piece of answer as AsyncIterable<Buffer>) {
      if (fault?.flip && sent === 0) piece[0] = (piece[0] ?? 0) ^ 1;
      if (fault?.delayMs) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
      const rest = (fault?.cutAfter ?? Number.POSITIVE_INFINITY) - sent;
      const part = piece.length > rest ? piece.subarray(0, rest) : piece;
      sent += part.length;
      bytes += part.length;
      if (part.length < piece.length) {
        response.write(part, () => response.destroy());
        answer.destroy();
        return;
      }
      if (!response.write(part)) await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end();
  };
  const server = createServer((incoming, response) => {
    const { url = '', method = 'GET', headers } = incoming;
    requests.push(`${method} ${url}${headers.range ? ` ${headers.range}` : ''}`);
    const fault = take(url, method);
    if (fault?.status !== undefined) {
      response.writeHead(fault.status, fault.headers ?? {});
      response.end(JSON.stringify({ errors: [{ code: 'FAULT', message: `injected ${fault.status}` }] }));
      return;
    }
    const [host, port] = target.split(':');
    const kept = { ...headers };
    if (fault?.noRange) delete kept.range;
    const outgoing = request({ host, port, path: url, method, headers: kept }, (answer) => {
      forward(answer, response, fault).catch(() => response.destroy());
    });
    outgoing.once('error', () => response.destroy());
    incoming.pipe(outgoing);
  });
  return {
    address: `127.0.0.1:${await listen(server)}`,
    requests,
    get bytes() {
      return bytes;
    },
    fault(fault, times = 1) {
      faults.push({ fault, left: times });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
