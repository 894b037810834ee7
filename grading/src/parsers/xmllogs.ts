/** Reads JUnit XML in a log as SWE-rebench V2 does: parses whole documents, or searches the text, which may be invalid XML. */
import { linesOf, strip } from '../text/pythontext.ts';
import { type JUnitCase, readJUnit } from './junit.ts';
import { type Reader, reading } from './reader.ts';

const OPEN = '<?xml';

/** Yields every document from `open` to `end`. */
export function* documents(log: string, open: string, end: string): Generator<string> {
  for (let from = log.indexOf(open); from >= 0; ) {
    const close = log.indexOf(end, from);
    if (close < 0) return;
    yield log.slice(from, close + end.length);
    from = log.indexOf(open, close + end.length);
  }
}

/** Returns the cases of a document; none if the document is not well-formed. */
function casesOf(xml: string): JUnitCase[] {
  try {
    return readJUnit(xml);
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/** Returns a reader that reads documents and stores `classname::name`. */
const reports =
  (select: (log: string) => Iterable<string>): Reader =>
  (log) =>
    new Map(
      Iterator.from(select(log))
        .flatMap(casesOf)
        .map(({ classname, name, status }) => [`${classname}::${name}`, status] as const),
    );

const documentsOf = (log: string) => documents(log, OPEN, '</testsuites>');
export const combinedReports = reports(documentsOf);
export const firstReport = reports((log) => documentsOf(log).take(1));
export const wholeReport = reports((log) => [strip(log)]);

/** Reads documents with one suite that begin and end on separate lines, as Gradle prints them. Stores `name (classname)`. */
export const gradlew = reading((log, found) => {
  let lines: string[] | null = null;
  for (const line of linesOf(log)) {
    if (strip(line).startsWith(OPEN)) lines = [];
    lines?.push(line);
    if (!lines || !line.includes('</testsuite>')) continue;
    const xml = strip(lines.join('\n'));
    for (const { classname, name, status } of xml.includes('<testsuites') ? [] : casesOf(xml)) {
      found.set(classname === '' ? name : `${name} (${classname})`, status);
    }
    lines = null;
  }
});

const CASE = '<testcase';
const END = '</testcase>';

/** Searches the text for cases, which end at the next `</testcase>`. Stores `classname name`. */
export const junitText = reading((log, found) => {
  let from = 0;
  let end = 0;
  for (let at = log.indexOf(CASE, from); at >= 0; at = log.indexOf(CASE, from)) {
    const close = log.indexOf('>', at);
    if (close < 0) break;
    from = close + 1;
    const tag = log.slice(at + CASE.length, close);
    let inside = '';
    if (!tag.endsWith('/')) {
      if (end >= 0 && end < from) end = log.indexOf(END, from);
      inside = log.slice(from, end < 0 ? log.length : end);
      from = end < 0 ? log.length : end + END.length;
    }
    const name = strip(`${attribute(tag, 'classname')} ${attribute(tag, 'name')}`);
    if (name !== '') found.set(name, statusInside(inside));
  }
});

const ATTRIBUTES = { classname: /\bclassname="([^"]*)"/, name: /\bname="([^"]*)"/ };
const attribute = (tag: string, key: keyof typeof ATTRIBUTES): string => ATTRIBUTES[key].exec(tag)?.[1] ?? '';

function statusInside(text: string): string {
  if (text.includes('<failure')) return 'FAILED';
  if (text.includes('<error')) return 'ERROR';
  return text.includes('<skipped') ? 'SKIPPED' : 'PASSED';
}
