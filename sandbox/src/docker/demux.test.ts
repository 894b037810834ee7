import { describe, expect, it } from 'vitest';
import { createDemuxer } from './demux.ts';

const frame = (type: number, text: string) => {
  const header = Buffer.alloc(8);
  header[0] = type;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
};

describe('createDemuxer', () => {
  it('yields the payload for any cut of the frames', () => {
    const bytes = Buffer.concat([
      frame(1, 'out'),
      frame(2, ''),
      frame(2, 'error\n'),
      frame(1, 'x'.repeat(300)),
    ]);
    for (let size = 1; size <= bytes.length; size++) {
      const parts: Buffer[] = [];
      const demux = createDemuxer((part) => parts.push(part));
      for (let at = 0; at < bytes.length; at += size) demux(bytes.subarray(at, at + size));
      expect(Buffer.concat(parts).toString()).toBe(`outerror\n${'x'.repeat(300)}`);
    }
  });
});
