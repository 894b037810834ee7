/** Refuses rows of SWE-Gym Raw, which have no image and no verified tests. */
import type { Row } from '../fields/fields.ts';
import { hasKnownRepository, isSwegymRepository } from './columns.ts';
import { type Family, NOTHING } from './family.ts';

export const swegymRaw: Family = {
  name: 'swegym',
  columns: [],
  fits: (row) =>
    ['patch', 'base_commit', 'repo'].every((name) => typeof row[name] === 'string' && row[name] !== '') &&
    ['FAIL_TO_PASS', 'PASS_TO_PASS'].every((name) => isEmpty(row[name])) &&
    ['image', 'image_name', 'docker_image', 'eval_script', 'test_cmd', 'environment'].every((name) =>
      isEmpty(row[name]),
    ) &&
    (!hasKnownRepository(row) ||
      (isSwegymRepository(row) && TESTED.every((name) => row[name] === undefined))),
  read(read) {
    read.refuse(
      'SWE-Gym Raw rows have no image and no verified tests',
      'FAIL_TO_PASS',
      'tests that are known to judge a fix',
      read.row.FAIL_TO_PASS,
      'leave out the row; SWE-Gym itself has the rows that can be run',
    );
    return NOTHING;
  },
};

/** Columns that every row of SWE-Gym has, and no row of SWE-Gym Raw. Both datasets contain the same repositories. */
const TESTED = ['FAIL_TO_PASS', 'PASS_TO_PASS', 'version'];

const isEmpty = (value: Row[string]): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === '[]' ||
  (Array.isArray(value) && value.length === 0);
