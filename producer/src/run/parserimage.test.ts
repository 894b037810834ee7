import { liveProgram } from '@swefarm/grading';
import { Instance, type WorkerRecord } from '@swefarm/shared';
import { bareInstance } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { parserImageWarning } from './parserimage.ts';

const plain = bareInstance();
const needing = Instance.parse({
  ...plain,
  needs: 3,
  plan: {
    grader: 'own-1',
    script: 'true',
    outcomes: liveProgram('def parser(log): pass'),
    verdict: { rule: 'live' },
  },
});
const farm = (...images: (boolean | undefined)[]) => ({
  registry: { list: async () => images.map((parser_image) => ({ parser_image }) as WorkerRecord) },
});

test('rows that no living worker can read are counted before they are queued', async () => {
  const warning = await parserImageWarning([plain, needing, needing], farm(false, undefined));
  expect(warning).toMatch(/^2 of 3 instances need parser_image, and none of the 2 living workers names one/);
});

test('nothing is said where nobody needs it, a worker has it, or none lives yet', async () => {
  expect(await parserImageWarning([plain], farm(false))).toBeNull();
  expect(await parserImageWarning([needing], farm(false, true))).toBeNull();
  expect(await parserImageWarning([needing], farm())).toBeNull();
});
