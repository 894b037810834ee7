export type Finding = {
  status: 'ok' | 'warn' | 'fail';
  subject: string;
  detail: string;
  /** How to fix the problem; absent or null if `detail` contains it. */
  remedy?: string | null;
};

const MARKS = { ok: '✓ ok  ', warn: '! warn', fail: '✗ fail' } as const;

/** Renders a finding with its remedy. `style` colours the mark. */
export function renderFinding(
  { status, subject, detail, remedy = null }: Finding,
  style: (status: Finding['status'], mark: string) => string = (_, mark) => mark,
): string {
  const line = `${style(status, MARKS[status])} ${subject.padEnd(18)} ${detail}`;
  return remedy === null ? line : `${line}\n${' '.repeat(26)}→ ${remedy}`;
}
