/** The HTTP client of policy endpoints, against servers on this machine. */
import { createHash } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { createEndpointClient } from '../src/endpoint/client.ts';
import { APIConnectionError, APIError } from '../src/endpoint/errors.ts';

async function clientOf(answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return createEndpointClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, null);
}

const signal = () => new AbortController().signal;
const TEXT = JSON.stringify({ text: 'ünï'.repeat(40_000) });

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
] as const)('an answer that a proxy compresses by %s unasked is read', async (encoding, compress) => {
  const encodings: (string | undefined)[] = [];
  const client = await clientOf((request, response) => {
    encodings.push(request.headers['accept-encoding'] as string);
    response.writeHead(200, { 'content-encoding': encoding }).end(compress(TEXT));
  });
  expect((await client.postWhole('chat', ['{}'], signal())).toString('utf8')).toBe(TEXT);
  expect(encodings).toEqual(['identity']);
});

test('the pieces of a body arrive as one body with its length in bytes', async () => {
  const client = await clientOf((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = Buffer.concat(pieces);
      response.end(JSON.stringify([request.headers['content-length'], body.length, body.toString('utf8')]));
    });
  });
  const answer = await client.postWhole('chat', ['{"a":"ü",', Buffer.from('"b":1}')], signal());
  expect(JSON.parse(answer.toString())).toEqual(['16', 16, '{"a":"ü","b":1}']);
});

test('large pieces of a body are sent in order, without a copy in memory', async () => {
  const client = await clientOf((request, response) => {
    const hash = createHash('sha256');
    request.on('data', (piece: Buffer) => hash.update(piece));
    request.on('end', () => response.end(hash.digest('hex')));
  });
  const large = Buffer.alloc(16 * 1024 ** 2, 'x');
  const body = ['{"a":', '"', large, '",', '"b":1}'];
  const before = process.memoryUsage().arrayBuffers;
  const answer = client.postWhole('chat', body, signal());
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(large.length / 2);
  const whole = createHash('sha256').update(body.join(''));
  expect((await answer).toString()).toBe(whole.digest('hex'));
});

test('an error of the reader ends the exchange and the connection', async () => {
  const gone = Promise.withResolvers<void>();
  const client = await clientOf((_request, response) => {
    response.once('close', () => gone.resolve());
    response.write('one');
  });
  const asking = client.post('chat', ['{}'], signal(), () => () => {
    throw new RangeError('too much');
  });
  await expect(asking).rejects.toThrow('too much');
  await gone.promise;
});

test('a refusal is an APIError, a connection closed without an answer an APIConnectionError', async () => {
  const refusing = await clientOf((_request, response) => {
    response.writeHead(307, { location: 'http://elsewhere/' }).end('gone');
  });
  const refused = await refusing.postWhole('chat', ['{}'], signal()).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(APIError);
  expect((refused as APIError).status).toBe(307);
  expect((refused as APIError).headers?.get('location')).toBe('http://elsewhere/');
  const closing = await clientOf((request) => request.socket.destroy());
  await expect(closing.postWhole('chat', ['{}'], signal())).rejects.toBeInstanceOf(APIConnectionError);
});

test('an abort ends the wait with its reason and closes the request at the server', async () => {
  const stop = new AbortController();
  const gone = Promise.withResolvers<void>();
  const client = await clientOf((_request, response) => {
    response.once('close', () => gone.resolve());
    stop.abort(new Error('enough'));
  });
  await expect(client.postWhole('chat', ['{}'], stop.signal)).rejects.toThrow('enough');
  await gone.promise;
});
