import type { Finding } from '@swefarm/shared';

type Problem = (subject: string, detail: string, remedy: string) => Finding;

export const warn: Problem = (subject, detail, remedy) => ({ status: 'warn', subject, detail, remedy });
export const fail: Problem = (subject, detail, remedy) => ({ status: 'fail', subject, detail, remedy });

/** Returns a warning if there is a remedy, otherwise the finding `ok`. */
export const ok = (subject: string, detail: string, remedy: string | false = false): Finding =>
  remedy === false ? { status: 'ok', subject, detail, remedy: null } : warn(subject, detail, remedy);
