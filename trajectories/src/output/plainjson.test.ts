import { expect, test } from 'vitest';
import { plainJson } from './plainjson.ts';

test('ids are lists, bytes are base64, also as views into a larger buffer', () => {
  const packed = {
    ids: Int32Array.of(1, -2, 3).subarray(1),
    log_probs: Float32Array.of(-0.5),
    experts: { dtype: 'int8', rows: Int8Array.of(9, 1, -1, 127).subarray(1) },
  };
  expect(JSON.parse(plainJson({ turns: [packed], left: undefined }))).toEqual({
    turns: [{ ids: [-2, 3], log_probs: [-0.5], experts: { dtype: 'int8', rows: 'Af9/' } }],
  });
});
