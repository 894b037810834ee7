/** The report: verdict, trust, and the status of each counted test, failures first. */
import type { Report } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { useState } from 'react';
import { integer, words } from './format.ts';

const CATEGORIES = ['FAIL_TO_PASS', 'PASS_TO_PASS'] as const;
const FAILED_SHOWN = 200;
const PASSED_SHOWN = 5;

export function Tests({ report }: { report: Report }) {
  const { trust } = report;
  const verdict =
    report.resolved === null ? 'nothing to judge' : report.resolved ? 'resolved' : 'not resolved';
  return (
    <>
      <p>
        <b>{verdict}</b> by {report.grader} · patch {words(report.patch_state)} · tests{' '}
        {words(report.evaluation)}
        {report.test_exit_code !== null && ` (exit ${report.test_exit_code})`} · trust{' '}
        <b className={trust.level === 'clean' ? '' : 'bad'}>{trust.level}</b>
        {trust.reasons.length > 0 && `: ${terminalSafe(trust.reasons.join('; '))}`}
      </p>
      {report.tests_status === null && <p className="notice dim">No test was judged.</p>}
      {CATEGORIES.map((category) => (
        <Category key={category} category={category} report={report} />
      ))}
    </>
  );
}

function Category({ category, report }: { category: (typeof CATEGORIES)[number]; report: Report }) {
  const [all, setAll] = useState(false);
  const bucket = report.tests_status?.[category];
  if (!bucket) return null;
  const tests = [
    ...bucket.failure.map((name) => ({ name, good: false })),
    ...bucket.success.map((name) => ({ name, good: true })),
  ];
  const most = Math.min(bucket.failure.length, FAILED_SHOWN) + PASSED_SHOWN;
  const shown = all || tests.length <= most + 2 ? tests : tests.slice(0, most);
  return (
    <table className="tests">
      <caption>
        {category} <b>{integer(bucket.success.length)}</b> of {integer(tests.length)} passed
      </caption>
      <thead className="visually-hidden">
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Test</th>
        </tr>
      </thead>
      <tbody>
        {shown.map(({ name, good }) => (
          <tr key={name}>
            <td className={`state ${good ? 'resolved' : 'failed'}`}>
              <span aria-hidden="true">{good ? '✓' : '✗'}</span> {report.status_map?.[name] ?? 'missing'}
            </td>
            <td className="mono">{terminalSafe(name)}</td>
          </tr>
        ))}
      </tbody>
      {shown.length < tests.length && (
        <tfoot>
          <tr>
            <td colSpan={2}>
              <button type="button" className="more" onClick={() => setAll(true)}>
                {integer(tests.length - shown.length)} more tests
              </button>
            </td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}
