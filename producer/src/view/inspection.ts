import type { DatasetFacts } from '@swefarm/datasets';
import { renderTable } from '@swefarm/trajectories';

const SHOWN = 30;

export function renderInspection(facts: DatasetFacts): string {
  const right = (name: string) => ({ name, align: 'right' as const });
  const spread = (of: DatasetFacts['tests']['FAIL_TO_PASS']): string =>
    of === null ? '–' : `${of.least} / ${of.q1} / ${of.median} / ${of.q3} / ${of.most}`;
  const numbers: [string, string][] = [
    ['file', `${facts.path} (${facts.form})`],
    ['rows', String(facts.rows)],
    ['this farm can evaluate', String(facts.gradable)],
    [
      'ids of several rows',
      facts.doubled.length === 0 ? '0' : `${facts.doubled.length}: ${facts.doubled.slice(0, 3).join(', ')}`,
    ],
    ['without gold patch', String(facts.without.patch)],
    ['without problem statement', String(facts.without.problem_statement)],
    ['without tests that a fix makes pass', String(facts.without.FAIL_TO_PASS)],
    ['without image', String(facts.without.image)],
    ['FAIL_TO_PASS: least, quartiles, most', spread(facts.tests.FAIL_TO_PASS)],
    ['PASS_TO_PASS: least, quartiles, most', spread(facts.tests.PASS_TO_PASS)],
  ];
  const columns = Object.entries(facts.columns).map(([name, { filled, types }]) => [
    name,
    Object.keys(types).join(', ') || 'nothing',
    filled === facts.rows ? 'all' : `${filled}`,
  ]);
  const reasons = Object.entries(facts.ungradable)
    .toSorted(([, a], [, b]) => b.rows - a.rows)
    .map(([reason, { rows, example }]) => [String(rows), reason, example]);
  const counts = (of: Record<string, number>): string[][] => {
    const all = Object.entries(of).map(([name, rows]) => [name, String(rows)]);
    return all.length <= SHOWN ? all : [...all.slice(0, SHOWN), [`… and ${all.length - SHOWN} more`, '']];
  };
  return [
    renderTable([{ name: 'all' }, { name: '' }], numbers),
    renderTable([{ name: 'column' }, { name: 'types' }, right('filled')], columns),
    ...(facts.gradable === 0
      ? []
      : [renderTable([{ name: 'family' }, right('rows')], counts(facts.families))]),
    renderTable([{ name: 'repository' }, right('rows')], counts(facts.repositories)),
    ...(reasons.length === 0
      ? []
      : [
          renderTable([right('rows'), { name: 'cannot be evaluated because' }, { name: 'such as' }], reasons),
        ]),
  ].join('\n\n');
}
