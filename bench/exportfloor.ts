/** The least that an export of text can cost: each artifact of a folder is unpacked, parsed and written as JSON again, into nothing. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const folder = process.argv[2] ?? '';
let bytes = 0;
for (const name of readdirSync(folder)) {
  const text = gunzipSync(readFileSync(join(folder, name))).toString('utf8');
  bytes += JSON.stringify(JSON.parse(text)).length;
}
process.stdout.write(`${bytes}\n`);
