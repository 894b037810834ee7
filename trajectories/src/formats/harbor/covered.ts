/** Lists the log parsers and verdict rules that the program of a task (`task/readers.py`, `task/grade.py`) supports. */
import type { InstancePlan } from '@swefarm/shared';

const SUMMARIES = ['matplotlib', 'pytest', 'pytest_options', 'pytest_v2', 'seaborn'];
const SWEBENCH = [...SUMMARIES, 'django', 'sympy'];

/** Supported log parsers, by dialect. */
export const COVERED_PARSERS: Readonly<Record<string, readonly string[]>> = {
  '4.1.0': SWEBENCH,
  '5.0.2': SWEBENCH,
  swegym: [...SWEBENCH, 'pytest_pydantic'],
  swesmith: [
    ...SWEBENCH,
    ...[
      'cpp-pytest',
      'mypy',
      'python-pytest-rA',
      'python-pytest-v',
      'python-slugify',
      'python-xdist-v',
      'tornado',
    ],
  ],
  'r2e-gym': ['r2e', 'r2e_nemo'],
  'swe-rebench': ['pytest', 'pytest_options', 'pytest_v2'],
  'swe-lego': ['pytest_rA'],
  'swe-bench-live': ['pytest'],
};

const COVERED_RULES: readonly string[] = [
  'swebench',
  'swebench-5',
  'subset',
  'equal',
  'live',
  'expected',
  'exit_code',
];

/** Returns the part of the plan that the program of a task does not support, or null. */
export function uncoveredIn({ outcomes, verdict }: InstancePlan): string | null {
  if (!COVERED_RULES.includes(verdict.rule)) return `the verdict rule ${verdict.rule}`;
  if (outcomes.from === 'exit_code') return null;
  if (outcomes.from !== 'log')
    return `outcomes from ${outcomes.from === 'program' ? 'a program of the dataset' : outcomes.from}`;
  const { dialect, parser } = outcomes;
  return COVERED_PARSERS[dialect]?.includes(parser) ? null : `the log parser ${parser} of ${dialect}`;
}
