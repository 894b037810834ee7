/** Reads pytest under xdist and with durations, as `parse_log_pytest_nebo` of SWE-rebench V2 does. */
import { before, S, strip, stripEnd } from '../text/pythontext.ts';
import { withoutControls } from './pytest.ts';
import { byLine } from './reader.ts';

const WORDS = ['PASSED', 'FAILED', 'SKIPPED', 'ERROR'];
const WORKER = new RegExp(`^\\[gw\\p{Nd}+\\]${S}+\\[[^\\]]*\\]${S}+([\\p{L}\\p{N}_]+)${S}+(.*)$`, 'u');
const PERCENT = new RegExp(`^\\[[^\\]]*\\]${S}+in${S}+\\p{Nd}+(?:\\.\\p{Nd}+)?s$`, 'u');
const FIRST = new RegExp(`^(PASSED|FAILED|SKIPPED|ERROR)${S}+(.*)$`);

export const pytestNebo = byLine((line, found) => {
  const hit = readLine(strip(withoutControls(line)));
  if (hit) found.set(strip(before(hit.name, ' in ')), hit.status);
});

function readLine(line: string): { name: string; status: string } | null {
  const worker = WORKER.exec(line);
  if (worker && WORDS.includes(worker[1] ?? '')) return { status: worker[1] ?? '', name: worker[2] ?? '' };
  const first = FIRST.exec(line);
  return withPercent(line) ?? (first && { status: first[1] ?? '', name: first[2] ?? '' });
}

/** Reads `name STATUS [ 50%] in 1.20s`. */
function withPercent(line: string): { name: string; status: string } | null {
  const open = line.lastIndexOf('[');
  if (open < 0 || !PERCENT.test(line.slice(open))) return null;
  const head = stripEnd(line.slice(0, open));
  const status = WORDS.find((word) => head.endsWith(word));
  if (status === undefined || head.length === open) return null;
  const rest = head.slice(0, -status.length);
  const name = stripEnd(rest);
  return name === '' || name.length === rest.length ? null : { name, status };
}
