/** Graders that plan an evaluation from the columns of a row: the commands that apply a patch, and the dialects. */
import type { ApplyAttempt, InstancePlan } from '@swefarm/shared';
import type { Dialect } from '../parsers/reader.ts';

export type GraderName = 'swebench-4.1.0' | 'swebench-5.0.2' | 'swegym';
export type GraderChoice = 'auto' | GraderName;

const PATCH = '/tmp/patch.diff';

const attempt = (command: string): ApplyAttempt => ({ name: command, argv: [...command.split(' '), PATCH] });

type Application = Pick<InstancePlan, 'patch_path' | 'apply' | 'reset_between' | 'already_applied' | 'blank'>;

/** Commands that apply a patch, in order. After a failed command, swebench 5.0.2 resets the tree and 4.1.0 does not. */
export const APPLICATION: Record<GraderName, Application> = {
  'swebench-4.1.0': {
    patch_path: PATCH,
    apply: ['git apply --verbose', 'git apply --verbose --reject', 'patch --batch --fuzz=5 -p1 -i'].map(
      attempt,
    ),
    reset_between: [],
    blank: 'tests_run',
  },
  'swebench-5.0.2': {
    patch_path: PATCH,
    apply: [
      'git apply --verbose',
      'git apply --verbose --3way',
      'git apply --verbose --reject',
      'patch --batch --forward --fuzz=5 -p1 -i',
    ].map(attempt),
    reset_between: [['/bin/bash', '-c', 'git checkout -- . ; git clean -fd']],
    already_applied: ['git', 'apply', '--check', '--reverse', PATCH],
    blank: 'tests_run',
  },
  // `git apply --allow-empty` accepts a patch of white space only.
  swegym: {
    patch_path: PATCH,
    apply: ['git apply --allow-empty -v', 'patch --batch --fuzz=5 -p1 -i'].map(attempt),
    reset_between: [],
    blank: 'applied',
  },
};

export const DIALECT: Record<GraderName, Dialect> = {
  'swebench-4.1.0': '4.1.0',
  'swebench-5.0.2': '5.0.2',
  swegym: 'swegym',
};
