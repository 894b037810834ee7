import fc from 'fast-check';
import { expect, test } from 'vitest';
import { floatsText, idsText } from './numbers.ts';

test('whole numbers of 32 bits are written as JSON.stringify writes them', () => {
  const edges = [0, 1, 9, 10, 99, 100, 151_935, -1, -10, 2 ** 31 - 1, -(2 ** 31)];
  expect(idsText(Int32Array.from(edges))).toBe(JSON.stringify(edges));
  expect(idsText(new Int32Array())).toBe('[]');
  const lists = fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 50 });
  fc.assert(
    fc.property(lists, (values) => idsText(Int32Array.from(values)) === JSON.stringify(values)),
    { numRuns: 500 },
  );
});

test('every float32 is unchanged after JSON; infinities become the given number', () => {
  const read = (values: Float32Array) => JSON.parse(floatsText(values, -1e9)) as number[];
  const edges = [
    0,
    0.5,
    -0.5,
    1,
    -1e-5,
    1e-5,
    9.999999e-6,
    1e-3,
    0.1,
    0.125,
    0.0625,
    1 / 3,
    10,
    99.99999,
    100,
  ];
  const far = [1e-45, 3.4e38, -1.1920928955078125e-7, 16_777_217, 123_456.78, 2 ** 31, -(2 ** 33)];
  const all = Float32Array.from([...edges, ...far]);
  expect(Float32Array.from(read(all))).toEqual(all);
  expect(floatsText(Float32Array.of(0.5, -0.25, -3, -0, 12.0625), 0)).toBe(
    '[0.500000000,-0.250000000,-3,0,12.0625000]',
  );
  expect(read(Float32Array.of(-Infinity, Number.NaN, 2))).toEqual([-1e9, -1e9, 2]);
  const float = fc.oneof(
    fc.float({ noNaN: true, noDefaultInfinity: true }),
    fc.float({ min: -30, max: 0, noNaN: true }),
    fc.float({ min: Math.fround(-1e-3), max: 0, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(float, { maxLength: 200 }), (values) => {
      const packed = Float32Array.from(values, (value) => value + 0);
      expect(Float32Array.from(read(packed))).toEqual(packed);
    }),
    { numRuns: 2_000 },
  );
});

test('a list that is longer than all earlier lists is written completely', () => {
  const values = Int32Array.from({ length: 100_000 }, (_, at) => at * 21_000);
  expect(idsText(values)).toBe(`[${values.join(',')}]`);
});
