import type { Finding } from '@swefarm/shared';

type Problem = (subject: string, detail: string, remedy: string) => Finding;

export const ok = (subject: string, detail: string): Finding => ({
  status: 'ok',
  subject,
  detail,
  remedy: null,
});
export const warn: Problem = (subject, detail, remedy) => ({ status: 'warn', subject, detail, remedy });
export const fail: Problem = (subject, detail, remedy) => ({ status: 'fail', subject, detail, remedy });
