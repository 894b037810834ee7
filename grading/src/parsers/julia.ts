/** Reads Julia's table of test sets as SWE-rebench V2 does: the numbers in a row decide the status. */
import { py } from '../text/pattern.ts';
import { fields, indentOf, shortLines, strip } from '../text/pythontext.ts';
import { reading } from './reader.ts';

const NUMBER = py`^\d+$`;
/** Maximum indentation of a number in the column Pass. If the first number is indented deeper, it belongs to a later column. */
const FAR = 10;

export const julia = reading((log, found) => {
  let header: string | null = null;
  for (const line of shortLines(log)) {
    if (line.includes('Test Summary:')) {
      header = line;
      continue;
    }
    const bar = line.indexOf('|');
    const name = bar < 0 ? '' : strip(line.slice(0, bar));
    if (header === null || name === '') continue;
    const status = statusOf(line.slice(bar + 1), header);
    if (status !== null) found.set(name, status);
  }
});

function statusOf(columns: string, header: string): string | null {
  const numbers = fields(columns, 64)
    .filter((word) => NUMBER.test(word))
    .map(Number);
  const [first, second = 0, third = 0] = numbers;
  if (first === undefined) return null;
  if (numbers.length === 2) return first !== second || indentOf(columns) > FAR ? 'ERROR' : 'PASSED';
  if (numbers.length === 3 && second > 0) return header.includes('Error') ? 'ERROR' : 'FAILED';
  if (numbers.length > 3 && third > 0) return 'ERROR';
  return numbers.length > 3 && second > 0 ? 'FAILED' : 'PASSED';
}
