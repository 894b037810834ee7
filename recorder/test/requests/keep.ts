/** Scrubs a record of record.ts into a fixture: `node recorder/test/requests/keep.ts RAW.jsonl NAME [MOST]`. `MOST`: number of requests. */
import { readFileSync } from 'node:fs';
import { type Recorded, writeRecorded } from './recorded.ts';
import { scrub } from './scrub.ts';

const [file, name, most = '1000'] = process.argv.slice(2);
if (!file || !name) throw new Error('usage: keep.ts RAW.jsonl NAME [MOST]');
const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(0, Number(most));
const requests = lines.map((line) => {
  const { path, headers, body, answer } = JSON.parse(line) as Recorded;
  return { path, headers, body: scrub(body), ...(answer ? { answer: scrub(answer) as typeof answer } : {}) };
});
writeRecorded(name, requests);
