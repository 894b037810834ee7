import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ReplyReader, ShellLostError } from './reply.ts';

const reply = (seq: number, body: string) => `\nn0 begin ${seq}\n${body}\nn0 end ${seq} 0 - - 1 2\n`;

describe('ReplyReader', () => {
  it('reads a reply in pieces of any size', async () => {
    const bytes = Buffer.from(reply(1, 'a\n\nn0 end\n\0é'));
    for (let size = 1; size <= bytes.length; size++) {
      const stream = new PassThrough();
      const reader = new ReplyReader(stream, 'n0');
      const next = reader.next(1, 1000);
      for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size));
      const { body, fields } = await next;
      expect(body.toString()).toBe('a\n\nn0 end\n\0é');
      expect(fields).toEqual(['0', '-', '-', '1', '2']);
    }
  });

  it('ignores a late reply to an abandoned request', async () => {
    const stream = new PassThrough();
    const reader = new ReplyReader(stream, 'n0');
    const next = reader.next(2, 1000);
    stream.write(reply(1, 'late'));
    await new Promise((resolve) => setImmediate(resolve));
    stream.write(reply(2, 'mine'));
    expect((await next).body.toString()).toBe('mine');
  });

  it('reads a reply after a late one, at any pause of the stream', async () => {
    const bytes = Buffer.from(`${reply(1, 'late')}${reply(2, 'mine\n\nn0 end 1 x\n')}`);
    for (let cut = 1; cut < bytes.length; cut++) {
      const stream = new PassThrough();
      const next = new ReplyReader(stream, 'n0').next(2, 1000);
      for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
        stream.write(piece);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { body, fields } = await next;
      expect(body.toString(), `cut at ${cut}`).toBe('mine\n\nn0 end 1 x\n');
      expect(fields).toEqual(['0', '-', '-', '1', '2']);
    }
  });

  it('is lost when the stream ends or exceeds the size of a reply', async () => {
    const ended = new PassThrough();
    const first = new ReplyReader(ended, 'n0').next(1, 10);
    ended.end('half');
    await expect(first).rejects.toBeInstanceOf(ShellLostError);
    const flooded = new PassThrough();
    const second = new ReplyReader(flooded, 'n0').next(1, 10);
    flooded.write(Buffer.alloc(2_000_000));
    await expect(second).rejects.toThrow('more than a reply');
  });
});
