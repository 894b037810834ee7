import { bareInstance } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { givenPatch } from './agentstage.ts';

const instance = (patch: string) => bareInstance({ instance_id: 'a__b-1', patch });

test('golden returns the gold patch, noop an empty one, patch the patch of the job', () => {
  expect(givenPatch('golden', instance('gold\n'), null)).toBe('gold\n');
  expect(givenPatch('noop', instance('gold\n'), 'x')).toBe('');
  expect(givenPatch('patch', instance('gold\n'), 'mine')).toBe('mine');
  expect(givenPatch('patch', instance('gold\n'), '')).toBe('');
});
test.each([
  ['golden', 'instance_invalid', /a__b-1: the row withholds its gold/],
  ['patch', 'instance_invalid', /a__b-1: no patch came/],
  ['mini', 'bug', /makes its own patch/],
] as const)('%s without a patch is a failure that is named', (type, failureClass, message) => {
  const call = () => givenPatch(type, instance(' \n'), null);
  expect(call).toThrow(message);
  expect(call).toThrow(expect.objectContaining({ failureClass }));
});
