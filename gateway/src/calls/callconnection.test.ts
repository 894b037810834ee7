import { once } from 'node:events';
import { connect } from 'node:net';
import Fastify, { type FastifyReply } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { CallConnection, closedSignal, whenClosed } from './callconnection.ts';

test.each(['before', 'after'] as const)(
  'a caller that disconnects %s its call waits is noticed',
  async (when) => {
    const gone = Promise.withResolvers<FastifyReply>();
    const begun = Promise.withResolvers<void>();
    const app = Fastify();
    const dropped: string[] = [];
    const calls = {
      drop: async (callId: string) => void dropped.push(callId),
      answered: async () => undefined,
    };
    const identity = { fingerprint: 'f', named: false, graceMs: 1 };
    const open = (reply: FastifyReply) =>
      new CallConnection(
        reply,
        calls,
        identity,
        { maxHoldSeconds: 60, timeoutSeconds: null },
        new AbortController().signal,
      );
    app.post('/run', async (_request, reply) => {
      const closed = once(reply.raw, 'close');
      const early = when === 'after' ? open(reply) : null;
      begun.resolve();
      await closed;
      using connection = early ?? open(reply);
      let closes = 0;
      whenClosed(reply, () => closes++);
      await connection.assign({ callId: 'f.1', startedAt: Date.now() });
      expect(connection.closed.aborted).toBe(true);
      await expect(connection.sleep(60_000)).rejects.toThrow();
      expect(closes).toBe(1);
      expect(closedSignal(reply).aborted).toBe(true);
      gone.resolve(reply);
      return reply.hijack();
    });
    app.setErrorHandler((error) => gone.reject(error));
    onTestFinished(() => app.close());
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
    const client = connect(Number(port), '127.0.0.1');
    client.write('POST /run HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n');
    await begun.promise;
    client.destroy();
    await gone.promise;
    expect(dropped).toEqual(['f.1']);
  },
);
