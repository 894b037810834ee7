/** Renders the failure table into docs/reliability.md; `npm run docs:reliability` writes it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { FAILURES, type FailureRule } from './failure.ts';

const PAGE = new URL('../../../docs/reliability.md', import.meta.url);
const FROM = '<!-- failures: generated from shared/src/failures/failure.ts by npm run docs:reliability -->\n';
const TO = '<!-- end of failures -->';

export function reliabilityPage(page: string): string {
  const from = page.indexOf(FROM) + FROM.length;
  return page.slice(0, from) + failureTable() + page.slice(page.indexOf(TO, from));
}

function failureTable(): string {
  const rows = Object.entries<FailureRule>(FAILURES).map(
    ([name, rule]) => `| \`${rule.stage}/${name}\` | ${rule.budget} | ${rule.where} | ${rule.meaning} |`,
  );
  return ['| stage/class | attempts | next | meaning |', '| --- | --- | --- | --- |', ...rows, ''].join('\n');
}

export const readPage = (): string => readFileSync(PAGE, 'utf8');

if (import.meta.main) writeFileSync(PAGE, reliabilityPage(readPage()));
