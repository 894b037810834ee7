import { describe, expect, it } from 'vitest';
import { Capture } from './capture.ts';

describe('Capture', () => {
  it('stores a short stream completely', () => {
    const capture = new Capture(10);
    capture.push(Buffer.from('01234'));
    capture.push(Buffer.from('56789'));
    expect(capture.result()).toEqual({ head: Buffer.from('0123456789'), tail: null, totalBytes: 10 });
  });

  it('stores head and tail of a long stream in chunks of any size', () => {
    const all = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
    for (const size of [1, 7, 1000, 65_536, 300_000]) {
      const capture = new Capture(1001);
      for (let at = 0; at < all.length; at += size) capture.push(all.subarray(at, at + size));
      const { head, tail, totalBytes } = capture.result();
      expect(head.equals(all.subarray(0, 501))).toBe(true);
      expect(tail?.equals(all.subarray(-500))).toBe(true);
      expect(totalBytes).toBe(300_000);
    }
  });
});
