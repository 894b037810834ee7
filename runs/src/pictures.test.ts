import { MOST, type Picture } from '@swefarm/shared';
import { bareInstance, bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { withShownPictures } from './pictures.ts';

const picture = (bytes = 3): Picture => ({
  address: 'https://x.example/a.png',
  file: { media_type: 'image/png', sha256: '', bytes, data: 'QUJD' },
});
const rows = (...pictures: (Picture | null)[]) =>
  pictures.map((one, at) => bareInstance({ instance_id: `a__b-${at}`, ...(one ? { pictures: [one] } : {}) }));
const run = (agent: object = {}, policy: object | null = {}) => {
  const record = bareRun();
  return {
    agent: { ...record.agent, type: 'mini' as const, pictures: 'send' as const, ...agent },
    policy: policy && ({ token_mode: 'text', ...policy } as NonNullable<typeof record.policy>),
  };
};

test('only a run that sends pictures stores them', () => {
  const instances = rows(picture(), null);
  expect(withShownPictures(run(), instances)).toEqual(instances);
  for (const other of [
    run({ pictures: 'drop' }),
    run({ type: 'golden' }, null),
    run({ type: 'external' }, null),
  ]) {
    expect(withShownPictures(other, instances).some(({ pictures }) => pictures)).toBe(false);
  }
});

test.each(['token-in', 'echo'])(
  'token mode %s is refused with the number of instances and a remedy',
  (mode) => {
    const refused = () => withShownPictures(run({}, { token_mode: mode }), rows(picture(), null, picture()));
    expect(refused).toThrow(
      /^2 of 3 instances show pictures \(a__b-0, a__b-2\), and token mode .* does not support pictures/,
    );
    expect(refused).toThrow(/use --token-mode text, or --pictures drop/);
    expect(withShownPictures(run({ pictures: 'drop' }, { token_mode: mode }), rows(picture()))).toHaveLength(
      1,
    );
  },
);

test('an agent that comes as a program is refused pictures, with the remedy', () => {
  const installed = { type: 'installed' as const };
  expect(() => withShownPictures(run(installed), rows(picture(), null))).toThrow(
    /^1 of 2 instances show pictures \(a__b-0\), and an agent that comes as a program .*; use --pictures drop/,
  );
  expect(withShownPictures(run({ ...installed, pictures: 'drop' }), rows(picture()))).toHaveLength(1);
});

test('an error names pictures without a file, each with its reason', () => {
  const bare = { address: 'https://x.example/b.png' };
  const svg = { address: 'https://x.example/c.svg', problem: 'c.svg is an SVG' };
  const refused = () => withShownPictures(run(), rows(picture(), bare, svg));
  expect(refused).toThrow(/3 of 3 instances show pictures, and those of 2 cannot be sent:/);
  expect(refused).toThrow(/a__b-1: https:\/\/x\.example\/b\.png: no --picture-files names it/);
  expect(refused).toThrow(/a__b-2: .*c\.svg is an SVG/);
  expect(refused).toThrow(/swefarm dataset pictures --dataset FILE --output-dir DIR/);
});

test('pictures over the size limit of a run are refused', () => {
  const count = Math.floor(MOST.runPictureBytes / MOST.pictureBytes) + 1;
  const refused = () => withShownPictures(run(), rows(...Array(count).fill(picture(MOST.pictureBytes))));
  expect(refused).toThrow(/make several runs/);
});
