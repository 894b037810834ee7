/** A finding of a doctor: a record for machines, one line for people. Producer and worker share it. */

export type Finding = {
  status: 'ok' | 'warn' | 'fail';
  subject: string;
  detail: string;
  /** How to fix it; absent or null where nothing needs fixing, or where `detail` says it. */
  remedy?: string | null;
};

const MARKS = { ok: '✓ ok  ', warn: '! warn', fail: '✗ fail' } as const;

/** The line of one finding with its remedy below. `style` colours the mark, for terminals. */
export function renderFinding(
  { status, subject, detail, remedy = null }: Finding,
  style: (status: Finding['status'], mark: string) => string = (_, mark) => mark,
): string {
  const line = `${style(status, MARKS[status])} ${subject.padEnd(18)} ${detail}`;
  return remedy === null ? line : `${line}\n${' '.repeat(26)}→ ${remedy}`;
}
